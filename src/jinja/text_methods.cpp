// Methods of str that search, split and join texts.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "jinja/formatting.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

const Text& text_self(const Object& self) { return *self.text(); }

// The range [start, end) of characters from the arguments of str.find() and others, as bytes.
struct Window {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t first = 0;  // character
  bool is_empty = false;  // start is beyond the end: not even "" is found
};

Window window_of(const Text& text, Parameters& given) {
  const std::vector<std::size_t> begins = characters(text.bytes);
  const auto length = static_cast<std::int64_t>(begins.size()) - 1;
  const std::int64_t start_given = given.integer("start", 0);
  const std::int64_t end_given = given.integer("end", length);
  const auto from_end = [&](std::int64_t at) { return at < 0 ? std::max<std::int64_t>(0, at + length) : at; };
  const std::int64_t start = from_end(start_given);
  const std::int64_t end = std::min(from_end(end_given), length);
  if (start > end) return {0, 0, 0, true};
  return {begins[static_cast<std::size_t>(start)], begins[static_cast<std::size_t>(end)],
          static_cast<std::size_t>(start), false};
}

// Returns the index of the character where `part` is found, or -1.
std::int64_t place_of(Interpreter& in, const Object& self, Parameters& given, bool is_last) {
  const Text& text = text_self(self);
  in.budget().step(text.size() / 16);
  const TextPtr part = given.text("sub");
  const Window window = window_of(text, given);
  given.finish();
  if (window.is_empty) return -1;
  const std::string_view inside = text.view().substr(window.begin, window.end - window.begin);
  const std::size_t at = is_last ? inside.rfind(part->view()) : inside.find(part->view());
  if (at == std::string_view::npos) return -1;
  return static_cast<std::int64_t>(window.first + count_characters(inside.substr(0, at)));
}

Object find(Interpreter& in, const Object& self, Parameters& given) { return place_of(in, self, given, false); }
Object rfind(Interpreter& in, const Object& self, Parameters& given) { return place_of(in, self, given, true); }

Object index(Interpreter& in, const Object& self, Parameters& given) {
  const std::int64_t at = place_of(in, self, given, false);
  if (at < 0) fail("substring not found");
  return at;
}

Object rindex(Interpreter& in, const Object& self, Parameters& given) {
  const std::int64_t at = place_of(in, self, given, true);
  if (at < 0) fail("substring not found");
  return at;
}

Object count_text(Interpreter& in, const Object& self, Parameters& given) {
  const Text& text = text_self(self);
  in.budget().step(text.size() / 16);
  const TextPtr part = given.text("sub");
  const Window window = window_of(text, given);
  given.finish();
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

bool has_affix(const Object& self, Parameters& given, bool at_end) {
  const Text& text = text_self(self);
  const Object affix = given.required("prefix");
  const Window window = window_of(text, given);
  given.finish();
  const std::string_view inside = text.view().substr(window.begin, window.end - window.begin);
  const auto matches = [&](const Object& of) {
    if (of.text() == nullptr) {
      if (of.is_undefined()) fail_undefined(of);
      fail(fmt::format("{} first arg must be str or a tuple of str, not {}", at_end ? "endswith" : "startswith",
                       type_name(of)));
    }
    const std::string_view part = of.text()->view();
    return !window.is_empty && (at_end ? inside.ends_with(part) : inside.starts_with(part));
  };
  if (const auto* tuple = affix.get_if<Tuple>()) return std::ranges::any_of(tuple->items->items, matches);
  return matches(affix);
}

Object startswith(Interpreter&, const Object& self, Parameters& given) { return has_affix(self, given, false); }
Object endswith(Interpreter&, const Object& self, Parameters& given) { return has_affix(self, given, true); }

template <Sides kSides>
Object strip(Interpreter& in, const Object& self, Parameters& given) {
  const Object set = given.take("chars").value_or(nullptr);
  given.finish();
  if (!set.is_none() && set.text() == nullptr) {
    if (set.is_undefined()) fail_undefined(set);
    fail("strip arg must be None or str");
  }
  in.budget().charge(2 * text_self(self).size());
  return stripped(text_self(self), set.text(), kSides);
}

template <bool kFromRight>
Object split_text(Interpreter& in, const Object& self, Parameters& given) {
  const Object separator = given.take("sep").value_or(nullptr);
  const std::int64_t most = given.integer("maxsplit", -1);
  given.finish();
  if (separator.is_undefined()) fail_undefined(separator);
  if (!separator.is_none() && separator.text() == nullptr)
    fail(fmt::format("must be str or None, not {}", type_name(separator)));
  in.budget().charge(text_self(self).size(), 64);
  return make_list(in.budget(),
                   split(text_self(self), separator.text(), most < 0 ? std::nullopt : std::optional(most), kFromRight));
}

Object splitlines(Interpreter& in, const Object& self, Parameters& given) {
  const bool with_ends = given.truth("keepends", false);
  given.finish();
  in.budget().charge(text_self(self).size(), 64);
  std::vector<Object> items;
  for (Text& line : lines_of(text_self(self), with_ends)) items.emplace_back(std::move(line));
  return make_list(in.budget(), std::move(items));
}

Object replace(Interpreter& in, const Object& self, Parameters& given) {
  const TextPtr from = given.text("old");
  const TextPtr to = given.text("new");
  const std::int64_t most = given.integer("count", -1);
  given.finish();
  return replaced(in.budget(), text_self(self), *from, *to, most);
}

Object join(Interpreter& in, const Object& self, Parameters& given) {
  const Object over = given.required("iterable");
  given.finish();
  std::vector<Object> items = items_of(in.budget(), over);
  if (text_self(self).is_markup) {
    for (Object& item : items)
      item = escaped(in.budget(), item.text() != nullptr ? *item.text() : to_text(in.budget(), item));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].text() == nullptr)
      fail(fmt::format("sequence item {}: expected str instance, {} found", i, type_name(items[i])));
  }
  return joined(in.budget(), text_self(self), items);
}

template <bool kLast>
Object partition(Interpreter& in, const Object& self, Parameters& given) {
  const Text& text = text_self(self);
  const TextPtr separator = given.text("sep");
  given.finish();
  if (separator->empty()) fail("empty separator");
  in.budget().charge(2 * text.size());
  const std::size_t at = kLast ? text.bytes.rfind(separator->bytes) : text.bytes.find(separator->bytes);
  if (at == std::string::npos) {
    return kLast ? make_tuple(in.budget(), {Text{}, Text{}, self}) : make_tuple(in.budget(), {self, Text{}, Text{}});
  }
  const std::size_t end = at + separator->size();
  return make_tuple(in.budget(), {part(text, 0, at), part(text, at, end), part(text, end, text.size())});
}

template <bool kSuffix>
Object remove_affix(Interpreter& in, const Object& self, Parameters& given) {
  const Text& text = text_self(self);
  const TextPtr affix = given.text("affix");
  given.finish();
  in.budget().charge(2 * text.size());
  if (kSuffix ? !text.view().ends_with(affix->view()) : !text.view().starts_with(affix->view())) return self;
  return kSuffix ? part(text, 0, text.size() - affix->size()) : part(text, affix->size(), text.size());
}

Object format(Interpreter& in, const Object& self, Parameters& given) {
  return brace_formatted(in, text_self(self), given);
}

Object format_map(Interpreter& in, const Object& self, Parameters& given) {
  const Object map = given.required("mapping");
  given.finish();
  const auto* const dict = map.get_if<DictPtr>();
  if (dict == nullptr) fail("format_map() needs a mapping");
  Keywords names;
  for (const auto& [key, value] : (*dict)->entries()) {
    if (key.text() != nullptr) names.emplace_back(*key.text(), value);
  }
  Parameters all({}, std::move(names));
  return brace_formatted(in, text_self(self), all);
}

// Chat templates have no bytes and no tables of characters.
Object unsupported(Interpreter&, const Object&, Parameters& given) {
  fail(fmt::format("{} is not supported in chat templates", given.call_name()));
}

}  // namespace

Method text_method(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
      {"find", find},
      {"rfind", rfind},
      {"index", index},
      {"rindex", rindex},
      {"count", count_text},
      {"startswith", startswith},
      {"endswith", endswith},
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
      {"encode", unsupported},
      {"translate", unsupported},
      {"maketrans", unsupported},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

// Methods of str that change case, pad, or test characters.

namespace {

template <Case kCase>
Object to_case(Interpreter& in, const Object& self, Parameters& given) {
  given.finish();
  in.budget().charge(2 * self.text()->size());
  return with_case(*self.text(), kCase);
}

Object capitalize(Interpreter& in, const Object& self, Parameters& given) {
  given.finish();
  in.budget().charge(2 * self.text()->size());
  return capitalized(*self.text());
}

template <Sides kFill>
Object pad(Interpreter& in, const Object& self, Parameters& given) {
  const auto width = given.required("width").integer();
  if (!width) fail("a width has to be an integer");
  const auto fill = given.take("fillchar");
  given.finish();
  if (fill && fill->text() == nullptr) fail("The fill character must be a unicode character");
  return padded(in.budget(), *self.text(), *width, fill ? *fill->text() : Text{" "}, kFill);
}

Object zfill(Interpreter& in, const Object& self, Parameters& given) {
  const auto width = given.required("width").integer();
  given.finish();
  if (!width) fail("a width has to be an integer");
  const Text& text = *self.text();
  const std::size_t sign = !text.empty() && (text.bytes[0] == '+' || text.bytes[0] == '-') ? 1 : 0;
  Text out = part(text, 0, sign);
  append(out, padded(in.budget(), part(text, sign, text.size()), *width - static_cast<std::int64_t>(sign), Text{"0"},
                     Sides::left));
  return out;
}

Object expandtabs(Interpreter& in, const Object& self, Parameters& given) {
  const std::int64_t size = given.integer("tabsize", 8);
  given.finish();
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

// Returns true when it holds for all characters, and there are any.
template <bool (*kIs)(char32_t)>
Object all_are(Interpreter& in, const Object& self, Parameters& given) {
  given.finish();
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
Object all_have_case(Interpreter&, const Object& self, Parameters& given) {
  given.finish();
  return has_case(*self.text(), kCase);
}

Object isascii(Interpreter&, const Object& self, Parameters& given) {
  given.finish();
  return is_ascii(self.text()->bytes);
}

Object isprintable(Interpreter& in, const Object& self, Parameters& given) {
  return self.text()->empty() ? Object(true) : all_are<is_printable>(in, self, given);
}

Object isidentifier(Interpreter&, const Object& self, Parameters& given) {
  given.finish();
  const std::string& text = self.text()->bytes;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    if (!is_word(here.code) || (i == 0 && is_numeric(here.code))) return false;
    i = here.next;
  }
  return !text.empty();
}

Object istitle(Interpreter&, const Object& self, Parameters& given) {
  given.finish();
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

Method text_question(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
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
      {"isspace", all_are<is_space>},
      {"isalpha", all_are<is_alphabetic>},
      {"isdecimal", all_are<is_decimal>},
      {"isdigit", all_are<is_digit>},
      {"isnumeric", all_are<is_numeric>},
      {"isalnum", all_are<is_alphanumeric>},
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
