// Implements the filters of texts.
#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "jinja/filters.hpp"
#include "jinja/formatting.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

template <Case kCase>
Object filter_case(Interpreter& in, const Object& value, Parameters&) {
  return change_case(to_text(in.budget(), value), kCase);
}

Object filter_capitalize(Interpreter& in, const Object& value, Parameters&) {
  return capitalize_text(to_text(in.budget(), value));
}

bool separates_words(char32_t code) {
  return is_space(code) ||
         (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) != std::string_view::npos);
}

// Implements "title". Jinja's words begin after white space, hyphens and opening brackets. Jinja gives lower() the rest
// of a word alone, so a sigma after the first letter is not at the end of a word.
Object filter_title(Interpreter& in, const Object& value, Parameters&) {
  const Text text = to_text(in.budget(), value);
  in.budget().charge(4 * text.size());
  Text out;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded first = decode(text.bytes, i);
    append_cased(out, text, i, first.next, Case::upper);
    i = first.next;
    if (separates_words(first.code)) continue;
    while (i < text.size() && !separates_words(decode(text.bytes, i).code)) i = decode(text.bytes, i).next;
    const Text rest = copy_part(text, first.next, i);
    append_cased(out, rest, 0, rest.size(), Case::lower);
  }
  return out;
}

Object filter_trim(Interpreter& in, const Object& value, Parameters& given) {
  const Object set = given.read("chars").value_or(nullptr);
  if (!set.is_none() && set.text() == nullptr) fail("strip arg must be None or str");
  return strip_text(to_text(in.budget(), value), set.text(), Sides::both);
}

Object filter_replace(Interpreter& in, const Object& value, Parameters& given) {
  const Text from = to_text(in.budget(), given.require("old"));
  const Text to = to_text(in.budget(), given.require("new"));
  const std::int64_t most = given.read_integer("count", -1);
  return replace_text(in.budget(), to_text(in.budget(), value), from, to, most);
}

Object filter_join(Interpreter& in, const Object& value, Parameters& given) {
  const Text separator = to_text(in.budget(), given.read("d").value_or(""));
  const Object attribute = given.read("attribute").value_or(nullptr);
  std::vector<Object> items = read_items(in.budget(), value);
  if (!attribute.is_none()) {
    const Key key(in, attribute, true);
    for (Object& item : items) item = key(item);
  }
  return join_texts(in.budget(), separator, items);
}

Object filter_center(Interpreter& in, const Object& value, Parameters& given) {
  const std::int64_t width = given.read_integer("width", 80);
  return pad_text(in.budget(), to_text(in.budget(), value), width, Text{" "}, Sides::both);
}

Object filter_indent(Interpreter& in, const Object& value, Parameters& given) {
  const Object width = given.read("width").value_or(4);
  const bool first = given.read_truth("first", false);
  const bool blank = given.read_truth("blank", false);
  if (value.is_undefined()) fail_undefined(value);
  if (value.text() == nullptr)
    fail(fmt::format("unsupported operand type(s) for +=: '{}' and 'str'", get_type_name(value)));
  Text indent;
  if (width.text() != nullptr) {
    indent = *width.text();
  } else {
    const auto count = width.get_integer();
    if (!count) fail("the width of filter 'indent' has to be an integer or a text");
    indent = pad_text(in.budget(), Text{}, *count, Text{" "}, Sides::left);
  }
  Text text = *value.text();
  append(text, "\n");
  in.budget().charge(2 * text.size());
  Text out;
  if (first) append(out, indent);
  bool is_first = true;
  for (const Text& line : split_lines(text, false)) {
    in.budget().charge(2 * indent.size() + 2 * line.size());
    if (!is_first) {
      append(out, "\n");
      if (blank || !line.empty()) append(out, indent);
    }
    append(out, line);
    is_first = false;
  }
  return out;
}

Object filter_truncate(Interpreter& in, const Object& value, Parameters& given) {
  const std::int64_t length = given.read_integer("length", 255);
  const bool cuts_words = given.read_truth("killwords", false);
  const Object end = given.read("end").value_or("...");
  const std::int64_t leeway = given.read_integer("leeway", 5);
  if (end.text() == nullptr) fail("the end of filter 'truncate' has to be a text");
  const auto given_size = find_length(value);
  if (!given_size) fail(fmt::format("object of type '{}' has no len()", get_type_name(value)));
  const auto end_length = static_cast<std::int64_t>(count_characters(end.text()->bytes));
  if (length < end_length) fail(fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) fail(fmt::format("expected leeway >= 0, got {}", leeway));
  const auto size = static_cast<std::int64_t>(*given_size);
  if (size <= length || size - length <= leeway) return value;
  if (value.text() == nullptr) fail("filter 'truncate' needs a text");
  const Text& text = *value.text();
  const std::vector<std::size_t> begins = find_characters(text.bytes);
  in.budget().charge(2 * text.size());
  Text out = copy_part(text, 0, begins[static_cast<std::size_t>(length - end_length)]);
  if (!cuts_words) {
    if (const std::size_t space = out.bytes.rfind(' '); space != std::string::npos) out = copy_part(out, 0, space);
  }
  append(out, *end.text());
  return out;
}

Object filter_format(Interpreter& in, const Object& value, Parameters& given) {
  std::vector<Object> items = given.read_positional();
  auto names = given.read_keywords();
  if (!items.empty() && !names.empty()) fail("can't handle positional and keyword arguments at the same time");
  const Text text = value.text() != nullptr ? *value.text() : to_text(in.budget(), value);
  if (names.empty()) return format_percent(in.budget(), text, make_tuple(in.budget(), std::move(items)));
  Dict dict;
  for (auto& [name, item] : names) dict.set(in.budget(), std::move(name), std::move(item));
  return format_percent(in.budget(), text, make_dict(std::move(dict)));
}

Object filter_string(Interpreter& in, const Object& value, Parameters&) {
  return value.text() != nullptr ? value : Object(to_text(in.budget(), value));
}

Object filter_safe(Interpreter& in, const Object& value, Parameters&) {
  Text text = to_text(in.budget(), value);
  text.is_markup = true;
  return text;
}

Object filter_escape(Interpreter& in, const Object& value, Parameters&) {
  in.budget().charge(12);
  const Text* const text = value.text();
  return text != nullptr ? escape_markup(in.budget(), *text) : escape_markup(in.budget(), to_text(in.budget(), value));
}

Object filter_forceescape(Interpreter& in, const Object& value, Parameters&) {
  return escape_markup(in.budget(), to_text(in.budget(), value));
}

Object filter_wordcount(Interpreter& in, const Object& value, Parameters&) {
  const Text text = to_text(in.budget(), value);
  std::int64_t count = 0;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    if (is_word(here.code) && !in_word) ++count;
    in_word = is_word(here.code);
    i = here.next;
  }
  return count;
}

Text quote_url(Budget& budget, const Object& value, bool in_query) {
  const Text text = to_text(budget, value);
  budget.charge(6 * text.size());
  Text out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes[i];
    const bool is_safe = is_ascii_alphanumeric(c) || std::string_view("_.-~").find(c) != std::string_view::npos ||
                         (c == '/' && !in_query);
    if (is_safe) {
      append(out, text, i, i + 1);
    } else if (c == ' ' && in_query) {
      append(out, "+", is_input(text, i));
    } else {
      append(out, fmt::format("%{:02X}", static_cast<unsigned char>(c)), is_input(text, i));
    }
  }
  return out;
}

Object filter_urlencode(Interpreter& in, const Object& value, Parameters&) {
  if (value.text() != nullptr || !is_iterable(value)) return quote_url(in.budget(), value, false);
  std::vector<Object> pairs;
  const Object items = value.is<DictPtr>() ? Object(DictView{DictView::Of::items, *value.get_if<DictPtr>()}) : value;
  for (const Object& item : read_items(in.budget(), items)) {
    const std::vector<Object> key_and_value = read_items(in.budget(), item);
    if (key_and_value.size() != 2) fail("filter 'urlencode' needs pairs");
    Text pair = quote_url(in.budget(), key_and_value[0], true);
    append(pair, "=");
    append(pair, quote_url(in.budget(), key_and_value[1], true));
    pairs.emplace_back(std::move(pair));
  }
  return join_texts(in.budget(), Text{"&"}, pairs);
}

Object filter_tojson(Interpreter& in, const Object& value, Parameters& given) {
  JsonStyle style;
  style.ascii = given.read_truth("ensure_ascii", false);
  const Object indent = given.read("indent").value_or(nullptr);
  const Object separators = given.read("separators").value_or(nullptr);
  style.sort_keys = given.read_truth("sort_keys", false);
  if (indent.text() != nullptr) {
    style.indent = *indent.text();
  } else if (const auto width = indent.get_integer()) {
    style.indent = pad_text(in.budget(), Text{}, *width, Text{" "}, Sides::left);
  } else if (!indent.is_none()) {
    fail("the indent of filter 'tojson' has to be an integer or a text");
  }
  if (!separators.is_none()) {
    const std::vector<Object> texts = read_items(in.budget(), separators);
    if (texts.size() != 2) fail("filter 'tojson' needs two separators");
    style.separators = {to_text(in.budget(), texts[0]), to_text(in.budget(), texts[1])};
  }
  return format_json(in.budget(), value, style);
}

}  // namespace

const Filters& get_text_filters() {
  static const Filters kFilters = {
      {"lower", filter_case<Case::lower>},
      {"upper", filter_case<Case::upper>},
      {"capitalize", filter_capitalize},
      {"title", filter_title},
      {"trim", filter_trim},
      {"replace", filter_replace},
      {"join", filter_join},
      {"center", filter_center},
      {"indent", filter_indent},
      {"truncate", filter_truncate},
      {"format", filter_format},
      {"string", filter_string},
      {"safe", filter_safe},
      {"e", filter_escape},
      {"escape", filter_escape},
      {"forceescape", filter_forceescape},
      {"wordcount", filter_wordcount},
      {"urlencode", filter_urlencode},
      {"tojson", filter_tojson},
  };
  return kFilters;
}

}  // namespace poise::jinja
