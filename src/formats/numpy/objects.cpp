#include "formats/numpy/objects.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace poise::numpy {
namespace {

enum class Elements : std::uint8_t { plain, objects, unknown };

// Of a type without fields: "<f4", "|O8". NumPy takes more words than those that it writes ("object", "f4,O").
Elements elements_of_word(std::string_view word) {
  if (!word.empty() && std::string_view("<>|=").find(word[0]) != std::string_view::npos) word.remove_prefix(1);
  if (word.empty()) return Elements::unknown;
  const std::size_t digits = std::min(word.find_first_not_of("0123456789", 1), word.size());
  const bool is_time = word[0] == 'M' || word[0] == 'm';
  const bool has_unit = is_time && digits < word.size() && word[digits] == '[' && word.find(']') == word.size() - 1;
  if (digits < word.size() && !has_unit) return Elements::unknown;
  if (word[0] == 'O') return Elements::objects;
  return std::string_view("?biufcSUaVMm").find(word[0]) != std::string_view::npos ? Elements::plain : Elements::unknown;
}

// Reads the literal of a type with fields: a list of (name, type) or (name, type, shape), where a name may be a pair
// with a title, and a type a word, such a list, or (type, shape).
class Fields {
 public:
  explicit Fields(std::string_view text) : text_(text) {}

  Elements elements() {
    const Elements found = type(0);
    skip_blanks();
    return is_wrong_ || at_ < text_.size() ? Elements::unknown : found;
  }

 private:
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n\f", at_), text_.size()); }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) { is_wrong_ = !take(wanted) || is_wrong_; }

  std::string_view word() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      is_wrong_ = true;
      return {};
    }
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  // A number, or numbers in brackets.
  void shape() {
    skip_blanks();
    const std::size_t end = text_.find_first_not_of("0123456789L, \t\n", at_);
    if (!take('(')) {
      at_ = std::min(end, text_.size());
      return;
    }
    const std::size_t close = text_.find_first_not_of("0123456789L, \t\n", at_);
    at_ = std::min(close, text_.size());
    expect(')');
  }

  static Elements worst(Elements a, Elements b) { return std::max(a, b); }

  Elements type(std::size_t depth) {
    constexpr std::size_t kMostLevels = 16;
    if (is_wrong_ || depth > kMostLevels) return Elements::unknown;
    if (take('[')) {
      Elements found = Elements::plain;
      while (!is_wrong_ && !take(']')) {
        found = worst(found, field(depth));
        if (!take(',')) {
          expect(']');
          break;
        }
      }
      return found;
    }
    if (!take('(')) return elements_of_word(word());
    const Elements found = type(depth + 1);
    expect(',');
    shape();
    expect(')');
    return found;
  }

  Elements field(std::size_t depth) {
    expect('(');
    if (take('(')) {
      (void)word();
      expect(',');
      (void)word();
      expect(')');
    } else {
      (void)word();
    }
    expect(',');
    const Elements found = type(depth + 1);
    if (take(',')) shape();
    expect(')');
    return found;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_wrong_ = false;
};

}  // namespace

std::vector<Finding> check_objects(const Header& header, const pytorch::PickleFile& data) {
  const Elements elements = header.is_record ? Fields(header.descr).elements() : elements_of_word(header.descr);
  if (elements == Elements::plain) return {};
  if (elements == Elements::objects) return pytorch::check_pickle(data);
  std::vector<Finding> findings = pytorch::check_pickles(data);
  findings.insert(findings.begin(),
                  {Severity::error,
                   fmt::format("{}the element type {} is not known: NumPy may take the elements for a pickle, which "
                               "runs code",
                               data.prefix, header.is_record ? header.descr : "'" + header.descr + "'"),
                   data.path, data.begin ? *data.begin : data.header});
  return findings;
}

}  // namespace poise::numpy
