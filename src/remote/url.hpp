// Parses URLs of models: http://, https://, and hf://ORG/NAME[@REVISION][/FILE].
#pragma once

#include <string>
#include <string_view>

namespace poise::remote {

// Returns true for a text that begins with a scheme and "://", of any kind. A path has no such beginning, unless it is
// written so on purpose: "./http://...".
bool has_scheme(std::string_view text);

// Returns the scheme, host and port that a URL names, in lower case with the port: "https://huggingface.co:443".
// Credentials may go only to the origin that they belong to. Throws bad_argument for a URL that is not http or https,
// or has a user name, a control character or no host.
std::string find_origin(const std::string& url);

// Resolves the target of a redirect. Throws invalid_file where find_origin() throws bad_argument.
std::string resolve_redirect(const std::string& base, const std::string& target);

// Returns a text with bytes that a URL's path cannot hold as %XX. Keeps slashes.
std::string escape_path(std::string_view path);

// Returns the last part of a URL's path, unescaped, without the query: the name by which a format is found.
std::string find_file_name(const std::string& url);

// Returns a URL without its query and fragment, for messages: the query may have a signature that gives access.
std::string hide_query(std::string_view url);

struct HubName {
  std::string repository;  // "ORG/NAME"
  std::string revision;    // a branch, a tag or a commit; "main" by default
  std::string file;        // empty: the whole repository
};

// Parses hf://ORG/NAME[@REVISION][/FILE]. A slash in REVISION is written %2F. Throws bad_argument for other texts.
HubName parse_hub_name(const std::string& text);

}  // namespace poise::remote
