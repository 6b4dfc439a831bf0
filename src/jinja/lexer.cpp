// A template's source is data with tags between them: {{ an expression }}, {% a statement %}, {# a comment #}. A minus
// inside a tag's bracket removes all white space on its side. A plus keeps white space that is otherwise removed: the
// line break after a statement or comment, and the white space before one that is first on its line.
#include "jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "bytes/utf8.hpp"
#include "jinja/text.hpp"

namespace poise::jinja {
namespace {

constexpr std::array<std::string_view, 26> kSymbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                       "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                       ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

// Returns the source with "\n" for every line break. Leaves out one line break at the end.
std::string convert_line_breaks(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(convert_line_breaks(source)) {}

  std::vector<Token> tokenize() {
    while (at_ < source_.size()) read_data_and_tag();
    tokens_.push_back({TokenKind::end, "", line_});
    return std::move(tokens_);
  }

 private:
  std::string_view get_rest() const { return std::string_view(source_).substr(at_); }
  bool is_next(std::string_view text) const { return get_rest().starts_with(text); }
  [[noreturn]] void refuse(const std::string& message) const { throw SyntaxFailure(message, line_); }

  // Moves to `end`, and counts the lines on the way.
  void advance(std::size_t end) {
    line_ += static_cast<std::size_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    starts_line_ = end > at_ && source_[end - 1] == '\n';
    at_ = end;
  }

  std::size_t skip_space(std::size_t from) const {
    while (from < source_.size()) {
      const Decoded here = decode(source_, from);
      if (!is_space(here.code)) break;
      from = here.next;
    }
    return from;
  }

  void read_data_and_tag() {
    std::size_t tag = at_;
    while (tag < source_.size() && !is_tag(tag)) ++tag;
    if (tag == source_.size()) {
      add_data(at_, tag);
      return advance(tag);
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    add_data(at_, find_data_end(at_, tag, sign, kind != '{'));
    advance(tag);
    const std::size_t inside = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '#') return skip_comment(inside);
    if (kind == '%') {
      if (const auto end = find_raw_content(inside)) return read_raw(*end);
    }
    tokens_.push_back({kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin, "", line_});
    advance(inside);
    kind == '{' ? read_variable() : read_block();
  }

  bool is_tag(std::size_t at) const {
    return source_[at] == '{' && at + 1 < source_.size() &&
           (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#');
  }

  void add_data(std::size_t begin, std::size_t end) {
    if (end > begin) tokens_.push_back({TokenKind::data, source_.substr(begin, end - begin), line_});
  }

  // Returns the end of the data before a tag, without the white space that the tag removes.
  std::size_t find_data_end(std::size_t begin, std::size_t tag, char sign, bool strips_line) const {
    const std::string_view data = std::string_view(source_).substr(begin, tag - begin);
    if (sign == '-') {
      std::size_t end = 0;
      for (std::size_t i = 0; i < data.size();) {
        const Decoded here = decode(data, i);
        i = here.next;
        if (!is_space(here.code)) end = i;
      }
      return begin + end;
    }
    if (sign == '+' || !strips_line) return tag;
    const std::size_t line = data.rfind('\n') + 1;  // 0 where there is no line break
    if (line == 0 && !starts_line_) return tag;
    return skip_space(begin + line) >= tag ? begin + line : tag;
  }

  void skip_comment(std::size_t inside) {
    const std::size_t end = source_.find("#}", inside);
    if (end == std::string::npos) refuse("a comment has no end: expected #}");
    advance(find_tag_end(end, end > inside ? source_[end - 1] : '\0'));
  }

  // Returns the place after a closing bracket at `end`, and after the white space that it removes.
  std::size_t find_tag_end(std::size_t end, char sign) const {
    if (sign == '-') return skip_space(end + 2);
    return end + 2 + (sign != '+' && end + 2 < source_.size() && source_[end + 2] == '\n' ? 1 : 0);
  }

  // Returns the place after the opening tag of a raw block; std::nullopt for other tags.
  std::optional<std::size_t> find_raw_content(std::size_t inside) const {
    std::size_t i = skip_space(inside);
    if (source_.compare(i, 3, "raw") != 0) return std::nullopt;
    i = skip_space(i + 3);
    if (source_.compare(i, 3, "-%}") == 0) return skip_space(i + 3);
    if (source_.compare(i, 2, "%}") == 0) return i + 2;
    return std::nullopt;
  }

  void read_raw(std::size_t begin) {
    advance(begin);
    for (std::size_t tag = source_.find("{%", begin); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      std::size_t i = skip_space(tag + 2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (source_.compare(i, 6, "endraw") != 0) continue;
      i = skip_space(i + 6);
      const char last = i < source_.size() ? source_[i] : '\0';
      if (last == '-' || last == '+') ++i;
      if (source_.compare(i, 2, "%}") != 0) continue;
      add_data(begin, find_data_end(begin, tag, sign, true));
      return advance(find_tag_end(i, last));
    }
    refuse("{% raw %} has no end: expected {% endraw %}");
  }

  void read_variable() {
    while (true) {
      if (open_.empty() && (is_next("-}}") || is_next("}}"))) {
        tokens_.push_back({TokenKind::variable_end, "", line_});
        return advance(is_next("-}}") ? skip_space(at_ + 3) : at_ + 2);
      }
      if (!read_token_or_space()) return;
    }
  }

  void read_block() {
    while (true) {
      if (open_.empty() && (is_next("-%}") || is_next("+%}") || is_next("%}"))) {
        tokens_.push_back({TokenKind::block_end, "", line_});
        const char sign = source_[at_];
        return advance(find_tag_end(sign == '%' ? at_ : at_ + 1, sign));
      }
      if (!read_token_or_space()) return;
    }
  }

  // Reads one token of an expression, or white space. Returns false at the end of the source.
  bool read_token_or_space() {
    if (at_ == source_.size()) return false;
    const std::size_t after = skip_space(at_);
    if (after > at_) {
      advance(after);
      return true;
    }
    const char c = source_[at_];
    if (is_ascii_digit(c)) {
      read_number();
    } else if (c == '\'' || c == '"') {
      read_string(c);
    } else if (const char32_t code = decode(source_, at_).code; is_word(code) || begins_identifier(code)) {
      read_name();
    } else {
      read_symbol();
    }
    return true;
  }

  void add_token(TokenKind kind, std::string text, std::size_t end) {
    tokens_.push_back({kind, std::move(text), line_});
    advance(end);
  }

  // Returns the end of a run of digits, which may have single underscores between them.
  template <typename IsDigit>
  std::size_t find_digits_end(std::size_t i, const IsDigit& is_digit) const {
    const std::size_t begin = i;
    while (i < source_.size()) {
      if (is_digit(source_[i])) {
        ++i;
      } else if (source_[i] == '_' && i > begin && i + 1 < source_.size() && is_digit(source_[i + 1])) {
        i += 2;
      } else {
        break;
      }
    }
    return i;
  }

  void read_number() {
    const std::size_t whole = find_digits_end(at_, is_ascii_digit);
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (const std::size_t end = find_fraction_end(whole); end > whole && !after_dot)
      return add_token(TokenKind::floating, copy_without_underscores(end), end);
    if (source_[at_] != '0') return add_token(TokenKind::integer, copy_without_underscores(whole), whole);
    if (const std::size_t end = find_prefixed_end(); end > at_ + 2)
      return add_token(TokenKind::integer, copy_without_underscores(end), end);
    const std::size_t zeros = find_digits_end(at_, [](char c) { return c == '0'; });
    add_token(TokenKind::integer, "0", zeros);
  }

  std::size_t find_fraction_end(std::size_t whole) const {
    std::size_t end = whole;
    if (end + 1 < source_.size() && source_[end] == '.' && is_ascii_digit(source_[end + 1]))
      end = find_digits_end(end + 1, is_ascii_digit);
    std::size_t exponent = end;
    if (exponent < source_.size() && (source_[exponent] == 'e' || source_[exponent] == 'E')) {
      ++exponent;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && is_ascii_digit(source_[exponent]))
        return find_digits_end(exponent, is_ascii_digit);
    }
    return end;
  }

  // Returns the end of a number such as 0x1f, 0b1 or 0o7; `at_` if there is none.
  std::size_t find_prefixed_end() const {
    if (at_ + 2 >= source_.size()) return at_;
    const char base = static_cast<char>(source_[at_ + 1] | 0x20);
    if (base != 'x' && base != 'b' && base != 'o') return at_;
    const std::size_t first = at_ + 2 + (source_[at_ + 2] == '_' ? 1 : 0);
    const std::size_t end = find_digits_end(first, [&](char c) {
      if (base == 'b') return c == '0' || c == '1';
      if (base == 'o') return c >= '0' && c <= '7';
      return parse_hex_digit(c) >= 0;
    });
    return end > first ? end : at_;
  }

  std::string copy_without_underscores(std::size_t end) const {
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    return text;
  }

  // Like jinja2, reads all characters of words and identifiers, and then refuses what is not an identifier.
  void read_name() {
    std::size_t end = at_;
    bool is_identifier = begins_identifier(decode(source_, at_).code);
    while (end < source_.size()) {
      const Decoded here = decode(source_, end);
      const bool continues = continues_identifier(here.code);
      if (!continues && !is_word(here.code)) break;
      is_identifier = is_identifier && (continues || end == at_);
      end = here.next;
    }
    if (!is_identifier) refuse(fmt::format("'{}' is not a name", source_.substr(at_, end - at_)));
    add_token(TokenKind::name, source_.substr(at_, end - at_), end);
  }

  void read_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2U : 1U;
    if (end >= source_.size()) refuse("a string has no end");
    std::string value;
    if (const std::string problem = unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), value);
        !problem.empty()) {
      refuse(problem);
    }
    add_token(TokenKind::string, std::move(value), end + 1);
  }

  void read_symbol() {
    const auto found = std::ranges::find_if(kSymbols, [&](std::string_view symbol) { return is_next(symbol); });
    if (found == kSymbols.end()) {
      refuse(fmt::format("unexpected character '{}'", source_.substr(at_, decode(source_, at_).next - at_)));
    }
    check_bracket((*found)[0]);
    add_token(TokenKind::symbol, std::string(*found), at_ + found->size());
  }

  // Checks that brackets match. A tag does not end inside them.
  void check_bracket(char c) {
    if (c == '{' || c == '(' || c == '[') {
      open_ += c == '{' ? '}' : c == '(' ? ')' : ']';
    } else if (c == '}' || c == ')' || c == ']') {
      if (open_.empty()) refuse(fmt::format("unexpected '{}'", c));
      if (open_.back() != c) refuse(fmt::format("unexpected '{}', expected '{}'", c, open_.back()));
      open_.pop_back();
    }
  }

  std::string source_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool starts_line_ = true;
  std::string open_;  // the bracket that closes each open one
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > kMaxSource)
    throw SyntaxFailure(fmt::format("the template has {} bytes, at most {} are read", source.size(), kMaxSource), 1);
  return Lexer(source).tokenize();
}

namespace {

char find_simple_escape(char c) {
  switch (c) {
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'v': return '\v';
    case '\\':
    case '\'':
    case '"': return c;
    default: return '\0';
  }
}

}  // namespace

std::string unescape(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      out += text[i++];
      continue;
    }
    const char c = text[i + 1];
    i += 2;
    if (c == '\n') continue;
    if (const char simple = find_simple_escape(c); simple != '\0') {
      out += simple;
    } else if (c >= '0' && c <= '7') {
      char32_t code = static_cast<char32_t>(c - '0');
      for (int more = 0; more < 2 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++more)
        code = code * 8 + static_cast<char32_t>(text[i++] - '0');
      append_utf8(out, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::string_view digits = text.substr(i, count);
      std::uint32_t code = 0;
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      if (digits.size() < count || parsed.ptr != digits.data() + count)
        return fmt::format("a string has \\{} without {} hexadecimal digits", c, count);
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return fmt::format("a string has the code U+{:04X}, which is not a character", code);
      append_utf8(out, code);
      i += count;
    } else if (c == 'N') {
      return "a string names a character with \\N, which is not supported";
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      // jinja2 first replaces such a character by its escape. After a backslash, this escape is only text.
      const Decoded here = decode(text, i - 1);
      const auto code = static_cast<std::uint32_t>(here.code);
      out += code <= 0xFF     ? fmt::format("\\x{:02x}", code)
             : code <= 0xFFFF ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
      i = here.next;
    } else {
      (out += '\\') += c;
    }
  }
  return {};
}

}  // namespace poise::jinja
