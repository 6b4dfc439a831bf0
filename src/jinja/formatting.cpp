#include "jinja/formatting.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "jinja/numbers.hpp"

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
    const bool is_mapping =
        dict_ != nullptr || values_.is<List>() || values_.is<RangeObject>() || values_.is_undefined();
    if (next_ < items_.size() && !is_mapping) fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char current() const {
    if (at_ >= text_.size()) fail("incomplete format");
    return text_.bytes[at_];
  }

  // Reads a key in parentheses, which may contain others. Like Python, takes the value of a key for a tuple of one
  // item: a width, a precision and the conversion read one item each.
  void read_key() {
    std::size_t open = 0;
    const std::size_t begin = at_ + 1;
    do {
      if (at_ >= text_.size()) fail("incomplete format key");
      open += text_.bytes[at_] == '(' ? 1 : 0;
      open -= text_.bytes[at_] == ')' ? 1 : 0;
      ++at_;
    } while (open > 0);
    if (dict_ == nullptr) fail("format requires a mapping");
    const std::string key = text_.bytes.substr(begin, at_ - begin - 1);
    const Object* const found = (*dict_)->find(key);
    if (found == nullptr) fail(fmt::format("there is no key '{}' for a format", key));
    items_ = {*found};
    next_ = 0;
  }

  Object read_value() {
    if (next_ >= items_.size()) fail("not enough arguments for format string");
    return items_[next_++];
  }

  std::size_t read_number(std::size_t most) {
    if (current() == '*') {
      ++at_;
      const auto given = read_value().get_integer();
      if (!given || text_.is_markup) fail("* wants int");
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
    if (current() == '%') {
      ++at_;
      return append(out_, "%");
    }
    if (current() == '(') read_key();
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
      if (type == 'a') shown = escape_non_ascii(budget_, shown);
      if (text_.is_markup)
        shown = type == 's' && given.text() != nullptr ? escape_markup(budget_, *given.text())
                                                       : escape_markup(budget_, shown);
      return append(out_, fill_text(budget_, shown, spec));
    }
    // Markup wraps its values, and these wrapped values become numbers by int() and float() alone.
    if (text_.is_markup && std::string_view("coxX").find(type) != std::string_view::npos)
      fail(fmt::format("%{} format: an integer is required, not _MarkupEscapeHelper", type));
    if (type == 'c') {
      spec.precision.reset();
      return append(out_, fill_text(budget_, make_character(given), spec));
    }
    if (std::string_view("diuoxXeEfFgG").find(type) == std::string_view::npos)
      fail(fmt::format("unsupported format character '{}'", type));
    if (given.is_undefined()) fail_undefined(given);
    const bool wants_real = std::string_view("eEfFgG").find(type) != std::string_view::npos;
    Object number = given;
    if (const Text* const text = given.text(); text != nullptr && text_.is_markup) {
      const auto whole = wants_real ? std::nullopt : parse_integer(*text, 10);
      const auto read = wants_real ? parse_real(*text) : std::nullopt;
      if (whole) number = *whole;
      if (read) number = *read;
    }
    const auto real = number.get_number();
    if (!real) fail(fmt::format("%{} format: a real number is required, not {}", type, get_type_name(given)));
    if (has_zeros) {
      spec.fill = "0";
      spec.align = '=';
    }
    spec.type = type == 'i' || type == 'u' ? 'd' : type;
    if (wants_real) return append(out_, fill_real(budget_, *real, spec));
    if (number.is<double>() && spec.type != 'd')
      fail(fmt::format("%{} format: an integer is required, not float", type));
    const auto whole = number.is<double>() ? truncate_real(*real) : number.get_integer();
    if (!whole) fail("cannot convert float NaN to integer");
    append(out_, fill_integer(budget_, *whole, spec));
  }

  // Returns the character of %c.
  static Text make_character(const Object& given) {
    if (const Text* const text = given.text()) {
      if (count_characters(text->bytes) != 1) fail("%c requires int or char");
      return *text;
    }
    if (given.is_undefined()) fail_undefined(given);
    const auto whole = given.get_integer();
    if (!whole) fail("%c requires int or char");
    return make_character_of(*whole);
  }

  Budget& budget_;
  const Text& text_;
  const Object& values_;
  const DictPtr* dict_;
  std::vector<Object> items_;
  std::size_t next_ = 0;
  std::size_t at_ = 0;
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
      const Field field = find_field(bytes, next + 1);
      append_field(text, field, depth, out);
      i = field.end + 1;
    }
    return out;
  }

 private:
  // Holds where the parts of "{name!c:spec}" are in a format: its name, conversion and specification, and its end.
  struct Field {
    std::size_t begin, name_end;
    char conversion = '\0';  // s, r or a; 0: none
    std::size_t spec = 0;    // 0: none
    std::size_t end = 0;     // of the bracket that ends the field
  };

  // Finds the parts as CPython's parse_field() does.
  static Field find_field(const std::string& bytes, std::size_t begin) {
    std::size_t at = begin;
    while (at < bytes.size() && std::string_view("}:!").find(bytes[at]) == std::string_view::npos) {
      if (bytes[at] == '{') fail("unexpected '{' in field name");
      if (bytes[at] == '[') at = std::min(bytes.find(']', at), bytes.size() - 1);
      ++at;
    }
    if (at == bytes.size()) fail("expected '}' before end of string");
    Field field = {begin, at};
    if (bytes[at] == '!') {
      if (at + 1 == bytes.size()) fail("end of string while looking for conversion specifier");
      field.conversion = bytes[at + 1];
      if (std::string_view("sra").find(field.conversion) == std::string_view::npos)
        fail("Unknown conversion specifier in a format string");
      at += 2;
      if (at < bytes.size() && bytes[at] != ':' && bytes[at] != '}') fail("expected ':' after conversion specifier");
    }
    if (at < bytes.size() && bytes[at] == '}') {
      field.end = at;
      return field;
    }
    field.spec = at + 1;
    int open = 1;
    for (++at; at < bytes.size(); ++at) {
      if (bytes[at] == '{') ++open;
      if (bytes[at] == '}' && --open == 0) {
        field.end = at;
        return field;
      }
    }
    fail("unmatched '{' in format spec");
  }

  void append_field(const Text& text, const Field& field, int depth, Text& out) {
    Object value = find_value(text.view().substr(field.begin, field.name_end - field.begin));
    if (field.conversion != '\0') {
      Text shown;
      if (field.conversion == 's') {
        shown = to_text(in_.budget(), value);
      } else {
        append_repr(in_.budget(), shown, value);
      }
      if (field.conversion == 'a') shown = escape_non_ascii(in_.budget(), shown);
      value = std::move(shown);
    }
    Text spec;
    const bool is_markup = value.text() != nullptr && value.text()->is_markup;
    if (field.spec != 0) spec = format(copy_part(text, field.spec, field.end), depth - 1);
    if (makes_markup_ && is_markup) {
      if (!spec.empty()) fail("Unsupported format specification for Markup.");
      in_.budget().charge(2 * value.text()->size());
      return append(out, *value.text());
    }
    Text made = spec.empty() ? to_text(in_.budget(), value) : format_value(in_.budget(), value, spec.view());
    // If the specification contains input, its fill character may be input.
    if (spec.marks.find('\1') != std::string::npos) made = mark_as_input(std::move(made.bytes));
    append(out, makes_markup_ ? escape_markup(in_.budget(), made) : made);
  }

  Object find_value(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Object value = find_argument(name, name.substr(0, first_end));
    for (std::size_t i = first_end; i < name.size();) {
      const bool is_attribute = name[i] == '.';
      if (!is_attribute && name[i] != '[') fail("Only '.' or '[' may follow ']' in format field specifier");
      const std::size_t end = is_attribute ? std::min(name.find_first_of(".[", i + 1), name.size()) : name.find(']', i);
      if (end == std::string_view::npos) fail("Missing ']' in format string");
      const std::string_view key = name.substr(i + 1, end - i - 1);
      if (key.empty()) fail("Empty attribute in format string");
      if (is_attribute) {
        value = in_.find_attribute(value, key);
      } else {
        const auto index = parse_index(key);
        value = in_.find_item(value, index ? Object(*index) : Object(key));
      }
      i = is_attribute ? end : end + 1;
    }
    return value;
  }

  // Finds the argument that a field's name begins with. As in Python's string.Formatter, {} and {0} exclude each other,
  // but {} and {0.name} do not.
  Object find_argument(std::string_view whole_name, std::string_view name) {
    auto index = parse_index(name);
    if (whole_name.empty()) {
      if (has_numbers_) fail("cannot switch from manual field specification to automatic field numbering");
      index = static_cast<std::int64_t>(next_++);
    } else if (index && name.size() == whole_name.size()) {
      if (next_ > 0) fail("cannot switch from manual field to automatic field numbering");
      has_numbers_ = true;
    }
    if (index) {
      if (static_cast<std::size_t>(*index) >= items_.size())
        fail(fmt::format("Replacement index {} out of range for positional args tuple", *index));
      return items_[static_cast<std::size_t>(*index)];
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
  bool has_numbers_ = false;  // true after a field whose name is a number
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

}  // namespace poise::jinja
