// Parses URLs of models: http://, https://, and hf://ORG/NAME[@REVISION][/FILE].
#pragma once

#include <string>
#include <string_view>

namespace poise::remote {

// Returns true for a text that begins with a scheme of two characters or more and "://". A user can write a path that
// begins in this way as "./http://...".
bool has_scheme(std::string_view text);

// Returns scheme, host and port of a URL in lower case: "https://huggingface.co:443". Credentials may go only to the
// origin that they belong to. Throws bad_argument for a URL that is not http or https, or has a user name, a password,
// a space, a control character or no host.
std::string find_origin(const std::string& url);

// Returns the URL of a redirect's target, which may be relative to `base`. Throws invalid_file for a target that
// find_origin() would refuse.
std::string resolve_redirect(const std::string& base, const std::string& target);

// Replaces each byte with %XX, except ASCII letters, digits and -._~/.
std::string escape_path(std::string_view path);

// Returns the last part of a URL's path, unescaped, without the query.
std::string find_file_name(const std::string& url);

// Returns a URL without its query and fragment, for messages, because a query may contain a signature that gives
// access.
std::string hide_query(std::string_view url);

struct HubName {
  std::string repository;  // "ORG/NAME"
  std::string revision;    // a branch, a tag or a commit; "main" by default
  std::string file;        // empty: the whole repository
};

// Parses hf://ORG/NAME[@REVISION][/FILE]. A slash in REVISION is written %2F. Throws bad_argument for other texts.
HubName parse_hub_name(const std::string& text);

}  // namespace poise::remote
