// Reads models on the Hugging Face Hub, or on another server with its API (HF_ENDPOINT).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/container.hpp"
#include "remote/http_source.hpp"
#include "remote/url.hpp"

namespace poise::remote {

// Returns HF_ENDPOINT, by default https://huggingface.co, without a slash at its end.
std::string find_endpoint();

// Returns options with the user's token for the endpoint: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or the file that `hf auth
// login` writes. No other server receives the token.
HttpOptions make_http_options();

struct HubFile {
  std::string name;  // has / between folders; each part is a plain file name
  std::optional<std::uint64_t> size;
  std::string digest;  // SHA-256 of a large file, git's SHA-1 of a small one; empty if the server does not state it
};

struct HubRepository {
  std::string endpoint;
  HubName named;
  std::string commit;          // 40 hexadecimal digits
  std::vector<HubFile> files;  // sorted by name

  // Returns the URL of a file at the commit.
  std::string make_url(std::string_view file) const;
  // Returns null if the repository does not have the file.
  const HubFile* find(std::string_view file) const;
};

// Lists a repository with one request. Throws what HttpClient::get_text() throws, and invalid_file for an answer
// without the expected fields, and for names that repeat or lead out of a directory.
HubRepository list_hub_repository(const HttpClient& client, const HubName& name);

// Opens the files of a repository, each once.
class HubFiles;
using HubFilesPtr = std::shared_ptr<const HubFiles>;

HubFilesPtr make_hub_files(HttpSessionPtr session, HubRepository repository, std::string name);

// Makes a directory of a repository's files; messages call it `name`. Opening a member of known size sends no request;
// its first read does.
std::unique_ptr<const Container> make_hub_directory(HubFilesPtr files, const std::string& name);

}  // namespace poise::remote
