// Implements the methods of Python's str.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "jinja/formatting.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

// Holds the range of bytes in which str.find() and similar methods search. Their arguments `start` and `end` count
// characters.
struct Window {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t first = 0;  // the index of its first character
  bool is_empty = false;  // true if it starts beyond its end, so that not even "" is in it
};

Window read_window(const Text& text, Parameters& given) {
  const std::vector<std::size_t> begins = find_characters(text.bytes);
  const auto length = static_cast<std::int64_t>(begins.size()) - 1;
  const std::int64_t start_given = given.read_integer("start", 0);
  const std::int64_t end_given = given.read_integer("end", length);
  const auto resolve_negative = [&](std::int64_t at) { return at < 0 ? std::max<std::int64_t>(0, at + length) : at; };
  const std::int64_t start = resolve_negative(start_given);
  const std::int64_t end = std::min(resolve_negative(end_given), length);
  if (start > end) return {0, 0, 0, true};
  return {begins[static_cast<std::size_t>(start)], begins[static_cast<std::size_t>(end)],
          static_cast<std::size_t>(start), false};
}

// Returns the index of the character where the argument `sub` is found, or -1.
std::int64_t find_place(Interpreter& in, const Object& self, Parameters& given, bool is_last) {
  const Text& text = *self.text();
  in.budget().step(text.size() / 16);
  const TextPtr part = given.read_text("sub");
  const Window window = read_window(text, given);
  if (window.is_empty) return -1;
  const std::string_view inside = text.view().substr(window.begin, window.end - window.begin);
  const std::size_t at = is_last ? inside.rfind(part->view()) : inside.find(part->view());
  if (at == std::string_view::npos) return -1;
  return static_cast<std::int64_t>(window.first + count_characters(inside.substr(0, at)));
}

template <bool kLast>
Object find(Interpreter& in, const Object& self, Parameters& given) {
  return find_place(in, self, given, kLast);
}

template <bool kLast>
Object index(Interpreter& in, const Object& self, Parameters& given) {
  const std::int64_t at = find_place(in, self, given, kLast);
  if (at < 0) fail("substring not found");
  return at;
}

Object count_occurrences(Interpreter& in, const Object& self, Parameters& given) {
  const Text& text = *self.text();
  in.budget().step(text.size() / 16);
  const TextPtr part = given.read_text("sub");
  const Window window = read_window(text, given);
  if (window.is_empty) return 0;
  const std::string_view inside = text.view().substr(window.begin, window.end - window.begin);
  if (part->empty()) return static_cast<std::int64_t>(count_characters(inside) + 1);
  std::int64_t count = 0;
  for (std::size_t at = inside.find(part->view()); at != std::string_view::npos;
       at = inside.find(part->view(), at + part->size())) {
    ++count;
  }
  return count;
}

template <bool kAtEnd>
Object has_affix(Interpreter&, const Object& self, Parameters& given) {
  const Text& text = *self.text();
  const Object affix = given.require("prefix");
  const Window window = read_window(text, given);
  const std::string_view inside = text.view().substr(window.begin, window.end - window.begin);
  const auto matches = [&](const Object& object) {
    if (object.text() == nullptr) {
      if (object.is_undefined()) fail_undefined(object);
      fail(fmt::format("{} first arg must be str or a tuple of str, not {}", kAtEnd ? "endswith" : "startswith",
                       get_type_name(object)));
    }
    const std::string_view part = object.text()->view();
    return !window.is_empty && (kAtEnd ? inside.ends_with(part) : inside.starts_with(part));
  };
  if (const auto* tuple = affix.get_if<Tuple>()) return std::ranges::any_of(tuple->items->items, matches);
  return matches(affix);
}

template <Sides kSides>
Object strip(Interpreter& in, const Object& self, Parameters& given) {
  const Object set = given.read("chars").value_or(nullptr);
  if (!set.is_none() && set.text() == nullptr) {
    if (set.is_undefined()) fail_undefined(set);
    fail("strip arg must be None or str");
  }
  in.budget().charge(2 * self.text()->size());
  return strip_text(*self.text(), set.text(), kSides);
}

template <bool kFromRight>
Object split_text(Interpreter& in, const Object& self, Parameters& given) {
  const Object separator = given.read("sep").value_or(nullptr);
  const std::int64_t most = given.read_integer("maxsplit", -1);
  if (separator.is_undefined()) fail_undefined(separator);
  if (!separator.is_none() && separator.text() == nullptr)
    fail(fmt::format("must be str or None, not {}", get_type_name(separator)));
  in.budget().charge(self.text()->size(), 64);
  return make_list(in.budget(),
                   split(*self.text(), separator.text(), most < 0 ? std::nullopt : std::optional(most), kFromRight));
}

Object splitlines(Interpreter& in, const Object& self, Parameters& given) {
  const bool with_ends = given.read_truth("keepends", false);
  in.budget().charge(self.text()->size(), 64);
  std::vector<Object> items;
  for (Text& line : split_lines(*self.text(), with_ends)) items.emplace_back(std::move(line));
  return make_list(in.budget(), std::move(items));
}

Object replace(Interpreter& in, const Object& self, Parameters& given) {
  const TextPtr from = given.read_text("old");
  const TextPtr to = given.read_text("new");
  const std::int64_t most = given.read_integer("count", -1);
  return replace_text(in.budget(), *self.text(), *from, *to, most);
}

Object join(Interpreter& in, const Object& self, Parameters& given) {
  const Object over = given.require("iterable");
  std::vector<Object> items = read_items(in.budget(), over);
  if (self.text()->is_markup) {
    for (Object& item : items)
      item = escape_markup(in.budget(), item.text() != nullptr ? *item.text() : to_text(in.budget(), item));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].text() == nullptr)
      fail(fmt::format("sequence item {}: expected str instance, {} found", i, get_type_name(items[i])));
  }
  return join_texts(in.budget(), *self.text(), items);
}

template <bool kLast>
Object partition(Interpreter& in, const Object& self, Parameters& given) {
  const Text& text = *self.text();
  const TextPtr separator = given.read_text("sep");
  if (separator->empty()) fail("empty separator");
  in.budget().charge(2 * text.size());
  const std::size_t at = kLast ? text.bytes.rfind(separator->bytes) : text.bytes.find(separator->bytes);
  if (at == std::string::npos) {
    return kLast ? make_tuple(in.budget(), {Text{}, Text{}, self}) : make_tuple(in.budget(), {self, Text{}, Text{}});
  }
  const std::size_t end = at + separator->size();
  return make_tuple(in.budget(), {copy_part(text, 0, at), copy_part(text, at, end), copy_part(text, end, text.size())});
}

template <bool kSuffix>
Object remove_affix(Interpreter& in, const Object& self, Parameters& given) {
  const Text& text = *self.text();
  const TextPtr affix = given.read_text("affix");
  in.budget().charge(2 * text.size());
  if (kSuffix ? !text.view().ends_with(affix->view()) : !text.view().starts_with(affix->view())) return self;
  return kSuffix ? copy_part(text, 0, text.size() - affix->size()) : copy_part(text, affix->size(), text.size());
}

Object format(Interpreter& in, const Object& self, Parameters& given) { return format_braces(in, *self.text(), given); }

Object format_map(Interpreter& in, const Object& self, Parameters& given) {
  const Object map = given.require("mapping");
  const auto* const dict = map.get_if<DictPtr>();
  if (dict == nullptr) fail("format_map() needs a mapping");
  Keywords names;
  for (const auto& [key, value] : (*dict)->entries()) {
    if (key.text() != nullptr) names.emplace_back(*key.text(), value);
  }
  Parameters all({}, std::move(names));
  return format_braces(in, *self.text(), all);
}

// Refuses methods that need bytes or tables of characters, which chat templates do not have.
Object refuse(Interpreter&, const Object&, Parameters& given) {
  fail(fmt::format("{} is not supported in chat templates", given.call_name()));
}

template <Case kCase>
Object to_case(Interpreter& in, const Object& self, Parameters&) {
  in.budget().charge(2 * self.text()->size());
  return change_case(*self.text(), kCase);
}

Object capitalize(Interpreter& in, const Object& self, Parameters&) {
  in.budget().charge(2 * self.text()->size());
  return capitalize_text(*self.text());
}

template <Sides kFill>
Object pad(Interpreter& in, const Object& self, Parameters& given) {
  const auto width = given.require("width").get_integer();
  if (!width) fail("a width has to be an integer");
  const auto fill = given.read("fillchar");
  if (fill && fill->text() == nullptr) fail("The fill character must be a unicode character");
  return pad_text(in.budget(), *self.text(), *width, fill ? *fill->text() : Text{" "}, kFill);
}

Object zfill(Interpreter& in, const Object& self, Parameters& given) {
  const auto width = given.require("width").get_integer();
  if (!width) fail("a width has to be an integer");
  const Text& text = *self.text();
  const std::size_t sign = !text.empty() && (text.bytes[0] == '+' || text.bytes[0] == '-') ? 1 : 0;
  Text out = copy_part(text, 0, sign);
  append(out, pad_text(in.budget(), copy_part(text, sign, text.size()), *width - static_cast<std::int64_t>(sign),
                       Text{"0"}, Sides::left));
  return out;
}

Object expandtabs(Interpreter& in, const Object& self, Parameters& given) {
  const std::int64_t size = given.read_integer("tabsize", 8);
  const Text& text = *self.text();
  Text out;
  std::int64_t column = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    if (here.code == '\t') {
      const std::int64_t spaces = size > 0 ? size - column % size : 0;
      in.budget().charge(static_cast<std::uint64_t>(spaces), 2);
      append(out, std::string(static_cast<std::size_t>(spaces), ' '), is_input(text, i));
      column += spaces;
    } else {
      append(out, text, i, here.next);
      column = here.code == '\n' || here.code == '\r' ? 0 : column + 1;
    }
    i = here.next;
  }
  in.budget().charge(2 * out.size());
  return out;
}

// Returns true if the text is not empty and kIs holds for all its characters.
template <bool (*kIs)(char32_t)>
Object are_all(Interpreter& in, const Object& self, Parameters&) {
  const std::string& text = self.text()->bytes;
  in.budget().step(text.size() / 16);
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    if (!kIs(here.code)) return false;
    i = here.next;
  }
  return !text.empty();
}

bool is_alphanumeric(char32_t code) {
  return is_alphabetic(code) || is_decimal(code) || is_digit(code) || is_numeric(code);
}

template <Case kCase>
Object all_have_case(Interpreter&, const Object& self, Parameters&) {
  return has_case(*self.text(), kCase);
}

Object isascii(Interpreter&, const Object& self, Parameters&) { return is_ascii(self.text()->bytes); }

Object isprintable(Interpreter& in, const Object& self, Parameters& given) {
  return self.text()->empty() ? Object(true) : are_all<is_printable>(in, self, given);
}

Object isidentifier(Interpreter&, const Object& self, Parameters&) {
  const std::string& text = self.text()->bytes;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    if (i == 0 ? !begins_identifier(here.code) : !continues_identifier(here.code)) return false;
    i = here.next;
  }
  return !text.empty();
}

Object istitle(Interpreter&, const Object& self, Parameters&) {
  const std::string& text = self.text()->bytes;
  bool in_word = false;
  bool has_any = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    const bool begins = is_upper(here.code) || is_title(here.code);
    if (begins ? in_word : is_lower(here.code) && !in_word) return false;
    in_word = begins || is_lower(here.code);
    has_any |= in_word;
    i = here.next;
  }
  return has_any;
}

}  // namespace

Method find_text_method(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
      {"find", find<false>},
      {"rfind", find<true>},
      {"index", index<false>},
      {"rindex", index<true>},
      {"count", count_occurrences},
      {"startswith", has_affix<false>},
      {"endswith", has_affix<true>},
      {"strip", strip<Sides::both>},
      {"lstrip", strip<Sides::left>},
      {"rstrip", strip<Sides::right>},
      {"split", split_text<false>},
      {"rsplit", split_text<true>},
      {"splitlines", splitlines},
      {"replace", replace},
      {"join", join},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"format", format},
      {"format_map", format_map},
      {"encode", refuse},
      {"translate", refuse},
      {"maketrans", refuse},
      {"lower", to_case<Case::lower>},
      {"upper", to_case<Case::upper>},
      {"title", to_case<Case::title>},
      {"swapcase", to_case<Case::swap>},
      {"casefold", to_case<Case::fold>},
      {"capitalize", capitalize},
      {"center", pad<Sides::both>},
      {"ljust", pad<Sides::right>},
      {"rjust", pad<Sides::left>},
      {"zfill", zfill},
      {"expandtabs", expandtabs},
      {"isspace", are_all<is_space>},
      {"isalpha", are_all<is_alphabetic>},
      {"isdecimal", are_all<is_decimal>},
      {"isdigit", are_all<is_digit>},
      {"isnumeric", are_all<is_numeric>},
      {"isalnum", are_all<is_alphanumeric>},
      {"islower", all_have_case<Case::lower>},
      {"isupper", all_have_case<Case::upper>},
      {"isascii", isascii},
      {"isprintable", isprintable},
      {"isidentifier", isidentifier},
      {"istitle", istitle},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace poise::jinja
