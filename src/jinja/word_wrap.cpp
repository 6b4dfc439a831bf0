// The filter wordwrap: Python's textwrap.wrap() for each line.
#include <algorithm>

#include <fmt/format.h>

#include "jinja/filters.hpp"
#include "jinja/formatting.hpp"
#include "jinja/text_methods.hpp"

namespace poise::jinja {
namespace {

// Characters from begin to end.
struct Chunk {
  std::size_t begin;
  std::size_t end;
  std::size_t size() const { return end - begin; }
};

struct WrapOptions {
  std::size_t width = 79;
  bool breaks_words = true;
  bool splits_hyphens = true;    // between words
  bool breaks_at_hyphen = true;  // in a word that is broken
};

// One line of a text as characters.
class Line {
 public:
  explicit Line(const Text& text) : text_(text), begins_(characters(text.bytes)) {
    codes_.reserve(begins_.size());
    for (std::size_t i = 0; i + 1 < begins_.size(); ++i) codes_.push_back(decode(text.bytes, begins_[i]).code);
    ink_.resize(codes_.size() + 1, codes_.size());
    for (std::size_t i = codes_.size(); i > 0; --i) ink_[i - 1] = is_space(codes_[i - 1]) ? ink_[i] : i - 1;
  }

  std::vector<Text> wrapped(const WrapOptions& options) const {
    std::vector<Chunk> left = options.splits_hyphens ? chunks() : words();
    std::ranges::reverse(left);
    std::vector<Text> lines;
    while (!left.empty()) {
      std::vector<Chunk> line;
      std::size_t length = 0;
      if (!lines.empty() && is_blank(left.back())) left.pop_back();
      while (!left.empty() && left.back().size() <= options.width - length) {
        line.push_back(left.back());
        length += line.back().size();
        left.pop_back();
      }
      if (!left.empty() && left.back().size() > options.width) put_long_word(left, line, length, options);
      if (!line.empty() && is_blank(line.back())) line.pop_back();
      if (!line.empty()) lines.push_back(part(text_, begins_[line.front().begin], begins_[line.back().end]));
    }
    return lines;
  }

 private:
  static bool is_wrap_space(char32_t code) { return code == ' ' || (code >= 9 && code <= 13); }
  static bool is_letter(char32_t code) { return is_word(code) && !is_decimal(code); }
  // What may stand before a dash between words.
  static bool is_word_end(char32_t code) {
    return is_word(code) ||
           (code < 0x80 && std::string_view("!\"'&.,?").find(static_cast<char>(code)) != std::string_view::npos);
  }

  bool is_blank(const Chunk& chunk) const { return ink_[chunk.begin] >= chunk.end; }

  std::size_t end_of_space(std::size_t at) const {
    while (at < codes_.size() && is_wrap_space(codes_[at])) ++at;
    return at;
  }

  // White space, and what is between it.
  std::vector<Chunk> words() const {
    std::vector<Chunk> result;
    for (std::size_t at = 0; at < codes_.size();) {
      std::size_t end = end_of_space(at);
      if (end == at) {
        while (end < codes_.size() && !is_wrap_space(codes_[end])) ++end;
      }
      result.push_back({at, end});
      at = end;
    }
    return result;
  }

  // The same, split behind hyphens and at dashes.
  std::vector<Chunk> chunks() const {
    std::vector<Chunk> result;
    for (std::size_t at = 0; at < codes_.size();) {
      std::size_t end = end_of_space(at);
      if (end == at && at > 0) end = end_of_dash(at);
      if (end == at) {
        do ++end;
        while (end < codes_.size() && !is_wrap_space(codes_[end]) && !is_hyphen(end) && end_of_dash(end) == end);
        if (end < codes_.size() && is_hyphen(end)) ++end;
      }
      result.push_back({at, end});
      at = end;
    }
    return result;
  }

  // Two hyphens or more between words; else the same place.
  std::size_t end_of_dash(std::size_t at) const {
    if (codes_[at] != '-' || !is_word_end(codes_[at - 1])) return at;
    std::size_t end = at;
    while (end < codes_.size() && codes_[end] == '-') ++end;
    return end - at >= 2 && end < codes_.size() && is_word(codes_[end]) ? end : at;
  }

  // A hyphen that a word may be split behind.
  bool is_hyphen(std::size_t at) const {
    if (codes_[at] != '-') return false;
    const auto letter = [&](std::size_t i) { return i < codes_.size() && is_letter(codes_[i]); };
    const bool follows = (at >= 2 && letter(at - 2) && letter(at - 1)) ||
                         (at >= 3 && letter(at - 3) && codes_[at - 2] == '-' && letter(at - 1));
    if (!follows || !letter(at + 1)) return false;
    return letter(at + 2) || (at + 2 < codes_.size() && codes_[at + 2] == '-' && letter(at + 3));
  }

  void put_long_word(std::vector<Chunk>& left, std::vector<Chunk>& line, std::size_t length,
                     const WrapOptions& options) const {
    Chunk& word = left.back();
    if (options.breaks_words) {
      std::size_t end = word.begin + options.width - length;
      if (options.breaks_at_hyphen) {
        std::size_t hyphen = end;
        while (hyphen > word.begin && codes_[hyphen - 1] != '-') --hyphen;
        const auto first = codes_.begin() + static_cast<std::ptrdiff_t>(word.begin);
        const auto last = codes_.begin() + static_cast<std::ptrdiff_t>(hyphen);
        if (hyphen > word.begin + 1 && std::any_of(first, last, [](char32_t code) { return code != '-'; }))
          end = hyphen;
      }
      line.push_back({word.begin, end});
      word.begin = end;
    } else if (line.empty()) {
      line.push_back(word);
      left.pop_back();
    }
  }

  const Text& text_;
  std::vector<std::size_t> begins_;
  std::vector<char32_t> codes_;
  std::vector<std::size_t> ink_;  // for each place the next character that is no space, there or behind it
};

}  // namespace

Object filter_wordwrap(Interpreter& in, const Object& value, Parameters& given) {
  Budget& budget = in.budget();
  const Object width = given.take("width").value_or(79);
  WrapOptions options;
  options.breaks_words = given.truth("break_long_words", true);
  const Object wrap = given.take("wrapstring").value_or(nullptr);
  const Object hyphens = given.take("break_on_hyphens").value_or(true);
  given.finish();
  options.breaks_at_hyphen = is_true(hyphens);
  options.splits_hyphens = hyphens.is<bool>() && options.breaks_at_hyphen;
  if (value.is_undefined()) fail_undefined(value);
  if (value.text() == nullptr) fail(fmt::format("'{}' object has no attribute 'splitlines'", type_name(value)));
  if (!wrap.is_none() && wrap.text() == nullptr) fail("the wrapstring of filter 'wordwrap' has to be a text");
  const Text between = wrap.is_none() ? Text{"\n"} : *wrap.text();
  Text out;
  out.is_markup = between.is_markup;
  bool is_first = true;
  budget.charge(2 * value.text()->size());
  for (const Text& line : lines_of(*value.text(), false)) {
    const auto columns = width.integer();
    if (!columns || *columns <= 0) fail("the width of filter 'wordwrap' has to be an integer above 0");
    options.width = static_cast<std::size_t>(*columns);
    budget.step(1 + line.size() / 16);
    budget.charge(line.size(), 80);
    std::vector<Text> parts = Line(line).wrapped(options);
    if (parts.empty()) parts.emplace_back();
    for (const Text& part : parts) {
      if (!is_first) {
        budget.step();
        budget.charge(2 * between.size());
        append(out, between);
      }
      is_first = false;
      append(out, out.is_markup ? escaped(part) : part);
    }
  }
  return out;
}

}  // namespace poise::jinja
