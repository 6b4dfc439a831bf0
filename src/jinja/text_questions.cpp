// Methods of str that change case, pad, or test characters.
#include <algorithm>
#include <map>

#include "jinja/text_methods.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
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

// True when it holds for all characters, and there are any.
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
