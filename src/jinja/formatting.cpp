#include "jinja/formatting.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/utf8.hpp"

namespace poise::jinja {
namespace {

// Computes Python's `text % values`, piece by piece.
class PercentFormat {
 public:
  PercentFormat(Budget& budget, const Text& text, const Object& values)
      : budget_(budget), text_(text), values_(values), dict_(values.get_if<DictPtr>()) {
    if (const auto* tuple = values.get_if<Tuple>()) {
      items_ = tuple->items->items;
    } else {
      items_ = {values};
    }
  }

  Text format() {
    const std::string& bytes = text_.bytes;
    while (at_ < bytes.size()) {
      const std::size_t percent = std::min(bytes.find('%', at_), bytes.size());
      append(out_, text_, at_, percent);
      at_ = percent;
      if (at_ < bytes.size()) append_conversion();
    }
    const bool is_mapping = dict_ != nullptr || values_.is<List>() || values_.is<RangeObject>();
    if (next_ < items_.size() && !is_mapping) fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char current() const {
    if (at_ >= text_.size()) fail("incomplete format");
    return text_.bytes[at_];
  }

  Object read_value() {
    if (key_) {
      if (dict_ == nullptr) fail("format requires a mapping");
      const Object* const found = (*dict_)->find(*key_);
      if (found == nullptr) fail(fmt::format("there is no key '{}' for a format", *key_));
      return *found;
    }
    if (next_ >= items_.size()) fail("not enough arguments for format string");
    return items_[next_++];
  }

  std::size_t read_number(std::size_t most) {
    if (current() == '*') {
      ++at_;
      const auto given = read_value().get_integer();
      if (!given) fail("* wants int");
      if (*given < 0 || static_cast<std::size_t>(*given) > most)
        fail(fmt::format("a width or precision of {}, expected 0 to {}", *given, most));
      return static_cast<std::size_t>(*given);
    }
    std::size_t result = 0;
    while (current() >= '0' && current() <= '9') {
      result = result * 10 + static_cast<std::size_t>(text_.bytes[at_++] - '0');
      if (result > most) fail(fmt::format("a width or precision is more than {}", most));
    }
    return result;
  }

  void append_conversion() {
    ++at_;
    key_.reset();
    if (current() == '(') {
      const std::size_t end = text_.bytes.find(')', at_);
      if (end == std::string::npos) fail("incomplete format key");
      key_ = text_.bytes.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
    }
    FormatSpec spec;
    bool is_left = false;
    bool has_zeros = false;
    for (bool more = true; more;) {
      switch (current()) {
        case '-': is_left = true; break;
        case '+': spec.sign = '+'; break;
        case ' ': spec.sign = spec.sign == '+' ? '+' : ' '; break;
        case '#': spec.alternate = true; break;
        case '0': has_zeros = true; break;
        default: more = false;
      }
      if (more) ++at_;
    }
    spec.width = read_number(kMaxWidth);
    if (current() == '.') {
      ++at_;
      spec.precision = static_cast<int>(read_number(kMaxPrecision));
    }
    while (current() == 'h' || current() == 'l' || current() == 'L') ++at_;
    spec.align = is_left ? '<' : '>';
    const char type = text_.bytes[at_++];
    if (type == '%') return append(out_, "%");
    append_value(type, spec, has_zeros && !is_left);
  }

  void append_value(char type, FormatSpec spec, bool has_zeros) {
    const Object given = read_value();
    if (type == 's' || type == 'r' || type == 'a') {
      Text shown;
      if (type == 's') {
        shown = to_text(budget_, given);
      } else {
        append_repr(budget_, shown, given);
      }
      if (text_.is_markup)
        shown = type == 's' && given.text() != nullptr ? escape_markup(budget_, *given.text())
                                                       : escape_markup(budget_, shown);
      return append(out_, format_value(budget_, shown, spec));
    }
    if (type == 'c' && given.text() != nullptr) {
      if (count_characters(given.text()->bytes) != 1) fail("%c requires int or char");
      return append(out_, format_value(budget_, *given.text(), spec));
    }
    if (std::string_view("diuoxXeEfFgGc").find(type) == std::string_view::npos)
      fail(fmt::format("unsupported format character '{}'", type));
    if (given.is_undefined()) fail_undefined(given);
    const auto real = given.get_number();
    if (!real) fail(fmt::format("%{} format: a real number is required, not {}", type, get_type_name(given)));
    if (has_zeros && type != 'c') {
      spec.fill = "0";
      spec.align = '=';
    }
    const bool wants_whole = std::string_view("diuoxXc").find(type) != std::string_view::npos;
    Object number = given;
    if (wants_whole && given.is<double>()) {
      if (std::string_view("diu").find(type) == std::string_view::npos)
        fail(fmt::format("%{} format: an integer is required, not float", type));
      if (!(std::abs(*real) < 0x1p62)) fail("an integer does not fit 62 bits");
      number = static_cast<std::int64_t>(*real);
    } else if (wants_whole) {
      number = *given.get_integer();
    } else {
      number = *real;
    }
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    append(out_, format_value(budget_, number, spec));
  }

  Budget& budget_;
  const Text& text_;
  const Object& values_;
  const DictPtr* dict_;
  std::vector<Object> items_;
  std::size_t next_ = 0;
  std::size_t at_ = 0;
  std::optional<std::string> key_;
  Text out_;
};

// Computes Python's text.format(...), piece by piece.
class BraceFormat {
 public:
  BraceFormat(Interpreter& in, std::vector<Object> items, Keywords names, bool makes_markup)
      : in_(in), items_(std::move(items)), names_(std::move(names)), makes_markup_(makes_markup) {}

  Text format(const Text& text, int depth = 2) {
    if (depth < 0) fail("Max string recursion exceeded");
    Text out;
    const std::string& bytes = text.bytes;
    for (std::size_t i = 0; i < bytes.size();) {
      const std::size_t next = std::min(bytes.find_first_of("{}", i), bytes.size());
      append(out, text, i, next);
      if (next == bytes.size()) break;
      if (next + 1 < bytes.size() && bytes[next + 1] == bytes[next]) {
        append(out, text, next, next + 1);
        i = next + 2;
        continue;
      }
      if (bytes[next] == '}') fail("Single '}' encountered in format string");
      const std::size_t end = find_field_end(bytes, next + 1);
      append_field(copy_part(text, next + 1, end), depth, out);
      i = end + 1;
    }
    return out;
  }

 private:
  static std::size_t find_field_end(const std::string& bytes, std::size_t from) {
    int open = 1;
    for (std::size_t i = from; i < bytes.size(); ++i) {
      if (bytes[i] == '{') ++open;
      if (bytes[i] == '}' && --open == 0) return i;
    }
    fail("expected '}' before end of string");
  }

  void append_field(const Text& field, int depth, Text& out) {
    const std::string& bytes = field.bytes;
    std::size_t name_end = 0;
    for (bool in_brackets = false; name_end < bytes.size(); ++name_end) {
      if (bytes[name_end] == '[') in_brackets = true;
      if (bytes[name_end] == ']') in_brackets = false;
      if (!in_brackets && (bytes[name_end] == '!' || bytes[name_end] == ':')) break;
    }
    Object value = find_value(std::string_view(bytes).substr(0, name_end));
    std::size_t at = name_end;
    if (at < bytes.size() && bytes[at] == '!') {
      const char conversion = at + 1 < bytes.size() ? bytes[at + 1] : '\0';
      Text shown;
      if (conversion == 's') {
        shown = to_text(in_.budget(), value);
      } else if (conversion == 'r' || conversion == 'a') {
        append_repr(in_.budget(), shown, value);
      } else {
        fail("Unknown conversion specifier in a format string");
      }
      value = std::move(shown);
      at += 2;
    }
    Text spec;
    const bool is_markup = value.text() != nullptr && value.text()->is_markup;
    if (at < bytes.size()) {
      if (bytes[at] != ':') fail("expected ':' after conversion specifier");
      spec = format(copy_part(field, at + 1, bytes.size()), depth - 1);
    }
    const auto append_made = [&](const Text& made) {
      append(out, makes_markup_ ? escape_markup(in_.budget(), made) : made);
    };
    if (makes_markup_ && is_markup) {
      if (!spec.empty()) fail("Unsupported format specification for Markup.");
      in_.budget().charge(2 * value.text()->size());
      return append(out, *value.text());
    }
    if (value.is_undefined() || value.is_none() || value.sequence() != nullptr || value.is<DictPtr>()) {
      if (!spec.empty()) fail(fmt::format("unsupported format string passed to {}.__format__", get_type_name(value)));
      return append_made(to_text(in_.budget(), value));
    }
    if (value.is<bool>() && !spec.empty()) value = *value.get_integer();
    const Text made = format_value(in_.budget(), value, parse_format_spec(spec.bytes));
    // If the specification contains input, its fill character may be input.
    append_made(spec.marks.find('\1') == std::string::npos ? made : mark_as_input(made.bytes));
  }

  Object find_value(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Object value = find_argument(name.substr(0, first_end));
    for (std::size_t i = first_end; i < name.size();) {
      if (name[i] == '.') {
        const std::size_t end = std::min(name.find_first_of(".[", i + 1), name.size());
        value = in_.find_attribute(value, name.substr(i + 1, end - i - 1));
        i = end;
      } else if (name[i] == '[') {
        const std::size_t end = name.find(']', i);
        if (end == std::string_view::npos) fail("Missing ']' in format string");
        const std::string_view key = name.substr(i + 1, end - i - 1);
        const auto index = parse_index(key);
        value = in_.find_item(value, index ? Object(*index) : Object(key));
        i = end + 1;
      } else {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Object find_argument(std::string_view name) {
    if (name.empty() || parse_index(name)) {
      const bool counts = name.empty();
      const std::size_t index = counts ? next_++ : static_cast<std::size_t>(*parse_index(name));
      if (index >= items_.size())
        fail(fmt::format("Replacement index {} out of range for positional args tuple", index));
      return items_[index];
    }
    for (const auto& [key, value] : names_) {
      if (key.bytes == name) return value;
    }
    fail(fmt::format("there is no argument '{}' for a format", name));
  }

  Interpreter& in_;
  std::vector<Object> items_;
  Keywords names_;
  bool makes_markup_;  // the result is markup, so this escapes values that are not markup
  std::size_t next_ = 0;
};

}  // namespace

Object format_percent(Budget& budget, const Text& text, const Object& values) {
  budget.charge(2 * text.size());
  Text result = PercentFormat(budget, text, values).format();
  result.is_markup = text.is_markup;
  budget.charge(2 * result.size());
  return result;
}

Object format_braces(Interpreter& in, const Text& text, Parameters& parameters) {
  in.budget().charge(2 * text.size());
  std::vector<Object> items = parameters.read_positional();
  Text result = BraceFormat(in, std::move(items), parameters.read_keywords(), text.is_markup).format(text);
  result.is_markup = text.is_markup;
  in.budget().charge(2 * result.size());
  return result;
}

Text escape_markup(Budget& budget, const Text& text) {
  budget.step(text.size() / 16);
  budget.charge(text.is_markup ? text.size() : 6 * text.size());
  if (text.is_markup) return text;
  Text out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t next = std::min(text.bytes.find_first_of("&<>'\"", i), text.size());
    append(out, text, i, next);
    if (next == text.size()) break;
    const char c = text.bytes[next];
    append(out,
           c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&#34;"
                      : "&#39;",
           is_input(text, next));
    i = next + 1;
  }
  out.is_markup = true;
  return out;
}

// The functions below apply a FormatSpec, for `text % values` as well as for text.format(...).

namespace {

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Returns the digits of an integer in the base that a format's type names.
std::string format_digits(std::uint64_t magnitude, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", magnitude);
    case 'X': return fmt::format("{:X}", magnitude);
    case 'o': return fmt::format("{:o}", magnitude);
    case 'b': return fmt::format("{:b}", magnitude);
    default: return std::to_string(magnitude);
  }
}

std::string group_digits(const std::string& digits, char separator) {
  const std::size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string format_real_digits(double magnitude, const FormatSpec& spec) {
  const int precision = spec.precision.value_or(6);
  std::string text;
  switch (spec.type) {
    case 'e': text = fmt::format("{:.{}e}", magnitude, precision); break;
    case 'E': text = fmt::format("{:.{}E}", magnitude, precision); break;
    case 'g': text = fmt::format("{:.{}g}", magnitude, std::max(precision, 1)); break;
    case 'G': text = fmt::format("{:.{}G}", magnitude, std::max(precision, 1)); break;
    case '%': text = fmt::format("{:.{}f}%", magnitude * 100, precision); break;
    case '\0':
      if (!spec.precision) return format_repr(magnitude);
      text = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      break;
    default: text = fmt::format("{:.{}f}", magnitude, precision);
  }
  return text;
}

std::string choose_sign(bool is_negative, char sign) {
  if (is_negative) return "-";
  return sign == '+' || sign == ' ' ? std::string(1, sign) : std::string();
}

// Returns `front` (sign and prefix) and the digits, filled up to the width. `usual` is the alignment if `spec` has
// none.
Text fill_number(const std::string& front, const std::string& digits, const FormatSpec& spec, char usual) {
  const std::size_t size = front.size() + digits.size();
  const std::size_t missing = spec.width > size ? spec.width - size : 0;
  const char align = spec.align != '\0' ? spec.align : usual;
  const auto repeat_fill = [&](std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += spec.fill;
    return all;
  };
  if (align == '=') return Text{front + repeat_fill(missing) + digits};
  if (align == '<') return Text{front + digits + repeat_fill(missing)};
  if (align == '^') return Text{repeat_fill(missing / 2) + front + digits + repeat_fill(missing - missing / 2)};
  return Text{repeat_fill(missing) + front + digits};
}

Text format_text(const Text& text, const FormatSpec& spec) {
  if (spec.type != '\0' && spec.type != 's')
    fail(fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  if (spec.grouping != '\0') fail(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  const std::vector<std::size_t> begins = find_characters(text.bytes);
  std::size_t count = begins.size() - 1;
  if (spec.precision) count = std::min(count, static_cast<std::size_t>(*spec.precision));
  const std::size_t missing = spec.width > count ? spec.width - count : 0;
  const std::size_t before = spec.align == '>' ? missing : spec.align == '^' ? missing / 2 : 0;
  Text out;
  for (std::size_t i = 0; i < before; ++i) append(out, spec.fill);
  append(out, text, 0, begins[count]);
  for (std::size_t i = before; i < missing; ++i) append(out, spec.fill);
  return out;
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t i = 0;
  if (!text.empty()) {
    const std::size_t first = decode(text, 0).next;
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      i = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[i++];
    }
  }
  const auto has = [&](char c) { return i < text.size() && text[i] == c; };
  const auto read_number = [&](std::size_t most) {
    std::size_t value = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
      value = value * 10 + static_cast<std::size_t>(text[i++] - '0');
      if (value > most) fail("Too many decimal digits in format string");
    }
    return value;
  };
  if (has('+') || has('-') || has(' ')) spec.sign = text[i++];
  if (has('#')) {
    spec.alternate = true;
    ++i;
  }
  if (has('0')) {
    ++i;
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = read_number(kMaxWidth);
  if (has(',') || has('_')) spec.grouping = text[i++];
  if (has('.')) {
    ++i;
    if (i == text.size() || text[i] < '0' || text[i] > '9') fail("Format specifier missing precision");
    spec.precision = static_cast<int>(read_number(kMaxPrecision));
  }
  if (i < text.size()) spec.type = text[i++];
  if (i < text.size()) fail("Invalid format specifier");
  return spec;
}

Text format_value(Budget& budget, const Object& value, const FormatSpec& spec) {
  budget.charge(spec.width + 64);
  if (const Text* const text = value.text()) return format_text(*text, spec);
  const bool wants_real = spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (const auto whole = value.get_integer(); whole && !wants_real && !(value.is<bool>() && spec.type == '\0')) {
    if (spec.type != '\0' && std::string_view("dxXobnc").find(spec.type) == std::string_view::npos)
      fail(fmt::format("Unknown format code '{}' for object of type 'int'", spec.type));
    if (spec.type == 'c') {
      if (*whole < 0 || *whole > 0x10FFFF || (*whole >= 0xD800 && *whole < 0xE000))
        fail("%c arg not in range(0x110000)");
      // A number has no mark, and may come from a message. A character made from it counts as input, so that no message
      // can write a special token in numbers.
      std::string bytes;
      append_utf8(bytes, static_cast<char32_t>(*whole));
      const Text character = mark_as_input(std::move(bytes));
      FormatSpec view_as_text = spec;
      view_as_text.type = '\0';
      return format_text(character, view_as_text);
    }
    const std::uint64_t magnitude =
        *whole < 0 ? 0 - static_cast<std::uint64_t>(*whole) : static_cast<std::uint64_t>(*whole);
    std::string digits = format_digits(magnitude, spec.type);
    if (spec.precision && digits.size() < static_cast<std::size_t>(*spec.precision))
      digits.insert(0, static_cast<std::size_t>(*spec.precision) - digits.size(), '0');
    if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping);
    const bool has_prefix = spec.alternate && std::string_view("xXob").find(spec.type) != std::string_view::npos;
    return fill_number(choose_sign(*whole < 0, spec.sign) + (has_prefix ? std::string("0") + spec.type : ""), digits,
                       spec, '>');
  }
  const auto real = value.get_number();
  if (real && !value.is<bool>()) {
    if (spec.type != '\0' && !wants_real)
      fail(fmt::format("Unknown format code '{}' for object of type 'float'", spec.type));
    std::string digits = format_real_digits(std::abs(*real), spec);
    if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping);
    return fill_number(choose_sign(std::signbit(*real) && !std::isnan(*real), spec.sign), digits, spec, '>');
  }
  if (wants_real && value.is<bool>()) return format_value(budget, *real, spec);
  return format_text(to_text(budget, value), spec);
}

}  // namespace poise::jinja
