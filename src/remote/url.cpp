#include "remote/url.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "io/directory.hpp"
#include "remote/curl.hpp"

namespace poise::remote {
namespace {

constexpr std::string_view kHubScheme = "hf://";

struct FreeUrl {
  void operator()(CURLU* url) const { load_curl().url_cleanup(url); }
};
using UrlPtr = std::unique_ptr<CURLU, FreeUrl>;

[[noreturn]] void refuse_url(const std::string& url, std::string_view why) {
  throw Error(ErrorKind::bad_argument, std::string(why), hide_query(url));
}

std::string read_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (load_curl().url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  load_curl().free(text);
  return copy;
}

// Parses a URL, relative to `base` unless that is empty.
UrlPtr parse_url(const std::string& text, const std::string& base = {}) {
  const auto is_refused = [](char byte) { return static_cast<unsigned char>(byte) <= 0x20 || byte == 0x7F; };
  if (std::ranges::any_of(text, is_refused)) refuse_url(text, "a URL cannot have spaces or control characters");
  UrlPtr url(load_curl().url());
  if (url == nullptr) throw std::bad_alloc();
  if (!base.empty() && load_curl().url_set(url.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK)
    refuse_url(base, "this is not a valid URL");
  if (load_curl().url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    refuse_url(text, "this is not a valid URL");
  const std::string scheme = read_part(url.get(), CURLUPART_SCHEME);
  if (scheme == "hf") refuse_url(text, "hf:// is written in lower case");
  if (scheme != "http" && scheme != "https")
    refuse_url(text, fmt::format("a URL of a model begins with https://, http:// or hf://, not {}://", scheme));
  if (!read_part(url.get(), CURLUPART_USER).empty() || !read_part(url.get(), CURLUPART_PASSWORD).empty())
    refuse_url(scheme + "://...", "a URL with a user name or password would show it in messages; leave it out");
  if (read_part(url.get(), CURLUPART_HOST).empty()) refuse_url(text, "the URL has no host");
  return url;
}

}  // namespace

bool has_scheme(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos || end < 2) return false;
  const std::string_view scheme = text.substr(0, end);
  return is_ascii_letter(scheme.front()) && std::ranges::all_of(scheme, [](char byte) {
           return is_ascii_alphanumeric(byte) || byte == '+' || byte == '-' || byte == '.';
         });
}

std::string find_origin(const std::string& url) {
  const UrlPtr parsed = parse_url(url);
  return to_lower_ascii(fmt::format("{}://{}:{}", read_part(parsed.get(), CURLUPART_SCHEME),
                                    read_part(parsed.get(), CURLUPART_HOST),
                                    read_part(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT)));
}

std::string resolve_redirect(const std::string& base, const std::string& target) {
  try {
    return read_part(parse_url(target, base).get(), CURLUPART_URL);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_argument) throw;
    throw Error(ErrorKind::invalid_file,
                fmt::format("the server redirects to {}: {}", shorten(error.path(), 100), error.message()),
                hide_query(base));
  }
}

std::string escape_path(std::string_view path) {
  std::string escaped;
  for (const char byte : path) {
    const bool is_kept = is_ascii_alphanumeric(byte) || std::string_view("-._~/").find(byte) != std::string_view::npos;
    escaped += is_kept ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return escaped;
}

std::string find_file_name(const std::string& url) {
  const std::string path = read_part(parse_url(url).get(), CURLUPART_PATH, CURLU_URLDECODE);
  return path.substr(path.rfind('/') + 1);
}

std::string hide_query(std::string_view url) { return std::string(url.substr(0, url.find_first_of("?#"))); }

HubName parse_hub_name(const std::string& text) {
  const auto refuse = [&] {
    throw Error(ErrorKind::bad_argument, "a model of the Hugging Face Hub is written hf://ORG/NAME[@REVISION][/FILE]",
                text);
  };
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && std::ranges::all_of(part, [](char byte) {
      return is_ascii_alphanumeric(byte) || byte == '-' || byte == '_' || byte == '.';
    });
  };
  if (!text.starts_with(kHubScheme)) refuse();
  std::string_view rest = std::string_view(text).substr(kHubScheme.size());
  HubName name;
  name.revision = "main";
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos || !is_part(rest.substr(0, slash))) refuse();
  const std::size_t end = std::min(rest.find_first_of("@/", slash + 1), rest.size());
  if (!is_part(rest.substr(slash + 1, end - slash - 1))) refuse();
  name.repository = rest.substr(0, end);
  rest.remove_prefix(end);
  if (rest.starts_with('@')) {
    const std::size_t stop = std::min(rest.find('/'), rest.size());
    name.revision = rest.substr(1, stop - 1);
    rest.remove_prefix(stop);
    for (std::size_t at = 0; (at = name.revision.find("%2F", at)) != std::string::npos;)
      name.revision.replace(at, 3, "/");
    // The cache stores the commit of a revision in the file refs/REVISION.
    if (!is_plain_path(name.revision)) refuse();
  }
  if (rest.starts_with('/')) rest.remove_prefix(1);
  name.file = rest;
  return name;
}

}  // namespace poise::remote
