// remote: reads models from servers, the Hugging Face Hub among them.
//
//   const poise::Model model = poise::open(poise::open_url("hf://mistralai/Mistral-7B-v0.1"));
//
// HF_ENDPOINT names another server with the Hub's API. HF_TOKEN, or the file that `hf auth login` writes, has the token
// for that server; no other server receives it. A URL in a model's file is never opened.
#pragma once

#include <string>
#include <string_view>

#include <poise/source.hpp>

namespace poise {

// Returns true for a text that begins as a URL does: a scheme of two or more characters, then "://".
bool is_url(std::string_view text);

// Opens a URL for open() of <poise/format.hpp>: a file by http:// or https://, a repository, or a file in one, by
// hf://ORG/NAME[@REVISION][/FILE]. Sends one request, but two for a file in a repository; reading sends more, for
// ranges of 1 to 16 MiB. The sources of a repository keep at most 128 MiB in memory. A file that changes on the server
// while it is read is an error.
//
// Throws bad_argument for other URLs; not_found; io when the server cannot be reached, refuses access, or fails several
// times; unsupported for a file above 64 MiB on a server that sends no ranges, and if the library libcurl is missing;
// invalid_file for answers that contradict themselves. Reading throws the same.
SourcePtr open_url(const std::string& url);

}  // namespace poise
