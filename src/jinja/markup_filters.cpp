// Filters that make and remove HTML.
#include <algorithm>

#include <fmt/format.h>

#include "jinja/filters.hpp"
#include "jinja/formatting.hpp"
#include "jinja/html_entities.hpp"
#include "jinja/links.hpp"
#include "jinja/text_methods.hpp"

namespace poise::jinja {
namespace {

// Removes each part of a text from `begin` to the next `end`, as the regular expressions of markupsafe 2.1.2 do.
// Later versions look at what is left once more.
Text without(const Text& text, std::string_view begin, std::string_view end) {
  const std::string_view bytes = text.view();
  Text out;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t from = bytes.find(begin, at);
    if (from == std::string_view::npos) break;
    const std::size_t to = bytes.find(end, from + begin.size());
    if (to == std::string_view::npos) break;
    append(out, text, at, from);
    at = to + end.size();
  }
  append(out, text, at, bytes.size());
  return out;
}

// One space for white space between words, none around them.
Text with_single_spaces(const Text& text) {
  Text out;
  bool in_space = false;
  bool is_input_space = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    if (is_space(here.code)) {
      if (!in_space) is_input_space = is_input(text, i);
      in_space = true;
    } else {
      if (in_space && !out.empty()) append(out, " ", is_input_space);
      in_space = false;
      append(out, text, i, here.next);
    }
    i = here.next;
  }
  return out;
}

Object filter_striptags(Interpreter& in, const Object& value, Parameters& given) {
  given.finish();
  const Text text = to_text(in.budget(), value);
  in.budget().step(text.size() / 16);
  in.budget().charge(8 * text.size());
  const Text plain = with_single_spaces(without(without(text, "<!--", "-->"), "<", ">"));
  in.budget().charge(6 * plain.size());
  return unescaped(plain);
}

// The text of a value, escaped.
Text escaped_text(Budget& budget, const Object& value) {
  return value.text() != nullptr ? escaped(budget, *value.text()) : escaped(budget, to_text(budget, value));
}

// What is true for Python, as an attribute: ' name="value"'.
Text attribute(Budget& budget, std::string_view name, const Object& value) {
  Text out;
  if (!is_true(value)) return out;
  append(out, fmt::format(" {}=\"", name));
  append(out, escaped_text(budget, value));
  append(out, "\"");
  return out;
}

Object filter_xmlattr(Interpreter& in, const Object& value, Parameters& given) {
  const bool has_space = given.truth("autospace", true);
  given.finish();
  if (value.is_undefined()) fail_undefined(value);
  const auto* const dict = value.get_if<DictPtr>();
  if (dict == nullptr) fail(fmt::format("'{}' object has no attribute 'items'", type_name(value)));
  Text out;
  for (const auto& [key, item] : (*dict)->entries()) {
    in.budget().step();
    if (item.is_none() || item.is_undefined()) continue;
    if (key.text() == nullptr) fail("names of attributes have to be texts");
    if (key.text()->bytes.find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      fail(fmt::format("Invalid character in attribute name: {}", repr(in.budget(), key)));
    const Text name = escaped(in.budget(), *key.text());
    const Text text = escaped_text(in.budget(), item);
    in.budget().charge(2 * (name.size() + text.size()) + 8);
    if (has_space || !out.empty()) append(out, " ");
    append(out, name);
    append(out, "=\"");
    append(out, text);
    append(out, "\"");
  }
  return out;
}

// ---- urlize

struct LinkOptions {
  std::optional<std::int64_t> limit;  // of shown characters
  Text attributes;
  std::vector<TextPtr> schemes;
};

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

// The part of a word that may be a link: without brackets before it and punctuation behind it, except for brackets
// that it opens.
std::pair<std::size_t, std::size_t> middle_of(std::string_view word) {
  std::size_t begin = 0;
  while (begin < word.size()) {
    const std::string_view rest = word.substr(begin);
    if (rest[0] != '(' && rest[0] != '<' && !rest.starts_with("&lt;")) break;
    begin += rest[0] == '&' ? 4 : 1;
  }
  std::size_t end = word.size();
  while (end > begin) {
    const std::string_view rest = word.substr(begin, end - begin);
    const bool is_entity = rest.ends_with("&gt;");
    if (!is_entity && std::string_view(")>.,").find(rest.back()) == std::string_view::npos) break;
    end -= is_entity ? 4 : 1;
  }
  using Pair = std::pair<std::string_view, std::string_view>;
  for (const auto& [opening, closing] : {Pair{"(", ")"}, Pair{"<", ">"}, Pair{"&lt;", "&gt;"}}) {
    const std::string_view middle = word.substr(begin, end - begin);
    const std::size_t opened = count_of(middle, opening);
    if (opened <= count_of(middle, closing)) continue;
    for (std::size_t i = std::min(opened, count_of(word.substr(end), closing)); i > 0; --i)
      end = word.find(closing, end) + closing.size();
  }
  return {begin, end};
}

Text link(const Text& shown, const Text& target, std::string_view prefix, const Text& attributes) {
  Text out;
  append(out, "<a href=\"");
  append(out, prefix);
  append(out, target);
  append(out, "\"");
  append(out, attributes);
  append(out, ">");
  append(out, shown);
  append(out, "</a>");
  return out;
}

Text shortened(const Text& text, std::optional<std::int64_t> limit) {
  const std::vector<std::size_t> begins = characters(text.bytes);
  const auto length = static_cast<std::int64_t>(begins.size()) - 1;
  if (!limit || length <= *limit) return text;
  const std::int64_t kept = *limit >= 0 ? *limit : std::max<std::int64_t>(0, length + *limit);
  Text out = part(text, 0, begins[static_cast<std::size_t>(kept)]);
  append(out, "...");
  return out;
}

// The link that a text is; the text itself if it is none.
Text linked(const Text& text, const LinkOptions& options) {
  const std::string_view bytes = text.view();
  if (is_web_address(bytes)) {
    const bool has_scheme = bytes.starts_with("https://") || bytes.starts_with("http://");
    return link(shortened(text, options.limit), text, has_scheme ? "" : "https://", options.attributes);
  }
  if (bytes.starts_with("mailto:") && is_mail_address(bytes.substr(7)))
    return link(part(text, 7, text.size()), text, "", {});
  if (!bytes.starts_with("www.") && bytes.find(':') == std::string_view::npos && is_mail_address(bytes))
    return link(text, text, "mailto:", {});
  const bool has_scheme = std::ranges::any_of(options.schemes, [&](const TextPtr& scheme) {
    return bytes.size() > scheme->size() && bytes.starts_with(scheme->bytes);
  });
  return has_scheme ? link(text, text, "", options.attributes) : text;
}

// The words of rel="", sorted.
Text relations(Budget& budget, const Object& given, bool nofollow) {
  if (is_true(given) && given.text() == nullptr) fail("the rel of filter 'urlize' has to be a text");
  std::vector<Text> words = {Text{"noopener"}};
  if (nofollow) words.push_back(Text{"nofollow"});
  if (is_true(given)) {
    budget.charge(given.text()->size(), 64);
    for (const Object& word : split(*given.text(), nullptr, std::nullopt, false)) words.push_back(*word.text());
  }
  std::ranges::stable_sort(words, {}, &Text::bytes);
  const auto are_same = [](const Text& left, const Text& right) { return left.bytes == right.bytes; };
  words.erase(std::unique(words.begin(), words.end(), are_same), words.end());
  Text out;
  for (const Text& word : words) {
    if (!out.empty()) append(out, " ");
    append(out, word);
  }
  return out;
}

LinkOptions link_options(Budget& budget, Parameters& given) {
  LinkOptions options;
  options.limit = given.optional_integer("trim_url_limit");
  const bool nofollow = given.truth("nofollow", false);
  const Object target = given.take("target").value_or(nullptr);
  const Object rel = given.take("rel").value_or(nullptr);
  const Object schemes = given.take("extra_schemes").value_or(nullptr);
  given.finish();
  append(options.attributes, attribute(budget, "rel", relations(budget, rel, nofollow)));
  append(options.attributes, attribute(budget, "target", target));
  if (schemes.is_none()) return options;
  for (const Object& scheme : items_of(budget, schemes)) {
    const TextPtr* const text = scheme.get_if<TextPtr>();
    if (text != nullptr) {
      budget.step(1 + (*text)->size() / 16);
      budget.charge(6 * (*text)->size());
    }
    if (text == nullptr || !is_scheme((*text)->view()))
      fail(fmt::format("{} is not a valid URI scheme prefix.", repr(budget, scheme)));
    options.schemes.push_back(*text);
  }
  if (schemes.is<IteratorPtr>()) options.schemes.clear();  // jinja2 has read it then
  return options;
}

Object filter_urlize(Interpreter& in, const Object& value, Parameters& given) {
  const LinkOptions options = link_options(in.budget(), given);
  const Text text = escaped_text(in.budget(), value);
  in.budget().charge(2 * text.size());
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    const bool in_space = is_space(decode(text.bytes, at).code);
    while (end < text.size() && is_space(decode(text.bytes, end).code) == in_space) end = decode(text.bytes, end).next;
    const Text word = part(text, at, end);
    at = end;
    if (in_space) {
      append(out, word);
      continue;
    }
    in.budget().step(1 + options.schemes.size() * (1 + word.size() / 64));
    in.budget().charge(16 * word.size() + 2 * options.attributes.size());
    const auto [first, last] = middle_of(word.view());
    append(out, word, 0, first);
    append(out, linked(part(word, first, last), options));
    append(out, word, last, word.size());
  }
  return out;
}

}  // namespace

const Filters& markup_filters() {
  static const Filters kFilters = {
      {"striptags", filter_striptags},
      {"urlize", filter_urlize},
      {"xmlattr", filter_xmlattr},
  };
  return kFilters;
}

}  // namespace poise::jinja
