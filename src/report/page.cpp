#include "report/report.hpp"

#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "pack/digest.hpp"
#include "report/packed.hpp"
#include "tokenizer/tokens/byte_level.hpp"

namespace poise {
namespace {

// Returns the digest of a script or style as a Content-Security-Policy names it: 'sha256-BASE64'.
std::string make_policy_source(std::string_view content) {
  const std::string digits = compute_sha256(std::as_bytes(std::span(content)));
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto parse_digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    bytes += static_cast<char>(parse_digit(digits[i]) * 16 + parse_digit(digits[i + 1]));
  }
  return fmt::format("'sha256-{}'", encode_base64(bytes));
}

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string make_page(const PageData& data) {
  const std::string policy =
      fmt::format("default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
                  make_policy_source(kPageScript), make_policy_source(kPageStyle));
  const std::array<std::pair<std::string_view, std::string>, 8> values = {{
      {"POLICY", policy},
      {"TITLE", escape_markup(data.title)},
      {"STYLE", std::string(kPageStyle)},
      {"MODEL", escape_json_for_html(data.model)},
      {"TENSORS", encode_base64(data.tensors)},
      {"MAPS", encode_base64(data.maps)},
      {"VOCABULARY", encode_base64(data.vocabulary)},
      {"SCRIPT", std::string(kPageScript)},
  }};
  // Placeholders are @NAME@. Values are put in from front to back, so that no value is searched for placeholders.
  std::string page;
  std::string_view rest = kPageMarkup;
  for (const auto& [name, value] : values) {
    const std::string placeholder = fmt::format("@{}@", name);
    const std::size_t at = rest.find(placeholder);
    if (at == std::string_view::npos)
      throw Error(ErrorKind::internal, fmt::format("page.html lacks {} in its place", placeholder));
    page += rest.substr(0, at);
    page += value;
    rest.remove_prefix(at + placeholder.size());
  }
  return page += rest;
}

}  // namespace poise
