// Addresses as jinja2's regular expressions _http_re, _email_re and _uri_scheme_re find them.
#include "jinja/links.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "jinja/text.hpp"

namespace poise::jinja {
namespace {

using Codes = std::u32string_view;

std::u32string codes_of(std::string_view text) {
  std::u32string codes;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    codes += here.code;
    i = here.next;
  }
  return codes;
}

// The ASCII letter that a character is where case does not count: Python takes four other ones for i, k and s.
char32_t folded(char32_t code) {
  if (code >= 'A' && code <= 'Z') return code + 32;
  if (code == 0x130 || code == 0x131) return 'i';
  if (code == 0x17F) return 's';
  return code == 0x212A ? 'k' : code;
}

bool begins(Codes text, std::string_view with) {
  if (text.size() < with.size()) return false;
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (folded(text[i]) != static_cast<unsigned char>(with[i])) return false;
  }
  return true;
}

bool is_same(Codes text, std::string_view as) { return text.size() == as.size() && begins(text, as); }

bool is_letter(char32_t code) { return folded(code) >= 'a' && folded(code) <= 'z'; }
bool is_label(char32_t code) { return is_word(code) || code == '%' || code == '-'; }

// What is left without an optional port, where the rest is a path, a query, a fragment or empty.
bool ends_address(Codes rest) {
  if (!rest.empty() && rest[0] == ':') {
    std::size_t digits = 0;
    while (digits + 1 < rest.size() && is_decimal(rest[digits + 1])) ++digits;
    if (digits == 0 || digits > 5) return false;
    rest.remove_prefix(digits + 1);
  }
  return rest.empty() || rest[0] == '/' || rest[0] == '?' || rest[0] == '#';
}

// The labels between the dots at the beginning of the text, and what follows them.
struct Host {
  std::vector<Codes> labels;
  Codes rest;
};

Host host_of(Codes text) {
  Host host;
  std::size_t begin = 0;
  std::size_t at = 0;
  for (; at < text.size() && (is_label(text[at]) || text[at] == '.'); ++at) {
    if (text[at] != '.') continue;
    host.labels.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  host.labels.push_back(text.substr(begin, at - begin));
  host.rest = text.substr(at);
  return host;
}

bool is_top_level(Codes label) {
  if (label.size() >= 2 && label.size() <= 63 && std::ranges::all_of(label, is_letter)) return true;
  if (!begins(label, "xn--")) return false;
  label.remove_prefix(4);
  return label.size() >= 2 && label.size() <= 59 &&
         std::ranges::all_of(label, [](char32_t code) { return is_word(code) || code == '%'; });
}

// With a scheme, which is removed: any domain.
bool is_domain(Codes text) {
  const Host host = host_of(text);
  return is_top_level(host.labels.back()) && ends_address(host.rest) &&
         std::none_of(host.labels.begin(), host.labels.end() - 1, [](Codes label) { return label.empty(); });
}

// Without a scheme: a domain of a few.
bool is_known_domain(Codes text) {
  static constexpr std::array<std::string_view, 8> kKnown = {"com", "net", "int", "edu", "gov", "org", "info", "mil"};
  const Host host = host_of(text);
  const Codes last = host.labels.back();
  return host.labels.size() >= 2 && ends_address(host.rest) &&
         std::ranges::any_of(kKnown, [&](std::string_view known) { return is_same(last, known); }) &&
         std::all_of(host.labels.begin(), host.labels.end() - 1,
                     [](Codes label) { return label.size() >= 2 && label.size() <= 63; });
}

bool is_ipv4(Codes text) {
  for (int i = 0; i < 4; ++i) {
    if (i > 0) {
      if (text.empty() || text[0] != '.') return false;
      text.remove_prefix(1);
    }
    std::size_t digits = 0;
    while (digits < text.size() && is_decimal(text[digits])) ++digits;
    if (digits == 0 || digits > 3) return false;
    text.remove_prefix(digits);
  }
  return ends_address(text);
}

// Two groups of at most four digits with a colon each, then at most six that may have one.
bool is_ipv6(Codes text) {
  if (text.empty() || text[0] != '[') return false;
  text.remove_prefix(1);
  std::size_t groups = 0;
  std::size_t digits = 0;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != ']'; ++at) {
    const char32_t code = folded(text[at]);
    if (code == ':') {
      const bool is_first = groups < 2;
      if (is_first && digits > 4) return false;
      groups += is_first ? 1 : std::max<std::size_t>(1, (digits + 3) / 4);
      digits = 0;
    } else if (is_decimal(code) || (code >= 'a' && code <= 'f')) {
      ++digits;
    } else {
      return false;
    }
  }
  if (at == text.size() || groups < 2) return false;
  return groups + (digits + 3) / 4 <= 8 && ends_address(text.substr(at + 1));
}

}  // namespace

bool is_web_address(std::string_view text) {
  const std::u32string codes = codes_of(text);
  const Codes whole = codes;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!begins(whole, scheme)) continue;
    const Codes rest = whole.substr(scheme.size());
    return is_domain(rest) || is_ipv4(rest) || is_ipv6(rest);
  }
  return (begins(whole, "www.") && is_domain(whole.substr(4))) || is_known_domain(whole);
}

bool is_mail_address(std::string_view text) {
  const std::size_t sign = text.rfind('@');
  if (sign == std::string_view::npos || sign == 0) return false;
  const std::u32string domain = codes_of(text.substr(sign + 1));
  const std::size_t dot = domain.rfind('.');
  if (dot == std::u32string::npos || dot == 0 || dot + 1 == domain.size() || !is_word(domain[0])) return false;
  const auto is_inner = [](char32_t code) { return is_word(code) || code == '.' || code == '-'; };
  return std::ranges::all_of(domain.substr(0, dot), is_inner) && std::ranges::all_of(domain.substr(dot + 1), is_word);
}

bool is_scheme(std::string_view text) {
  for (int i = 0; i < 2 && text.ends_with('/'); ++i) text.remove_suffix(1);
  if (!text.ends_with(':')) return false;
  const std::u32string name = codes_of(text.substr(0, text.size() - 1));
  const auto is_part = [](char32_t code) { return is_word(code) || code == '.' || code == '+' || code == '-'; };
  return name.size() >= 2 && std::ranges::all_of(name, is_part);
}

}  // namespace poise::jinja
