// The tables of the pages in docs/, which others implement formats from: rows of cells, and the numbers, names and
// types in a cell. Tests compare them with the tables of the code, in both directions, and read files by them.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <poise/model.hpp>
#include <poise/tensor.hpp>

#include "bytes/little_endian.hpp"
#include "support/directories.hpp"

namespace poise::page {

using Row = std::vector<std::string>;
using Table = std::vector<Row>;

inline std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

inline Row cells_of(std::string_view line) {
  Row cells;
  for (std::size_t at = 1, end = 0; (end = line.find('|', at)) != std::string_view::npos; at = end + 1)
    cells.push_back(trimmed(line.substr(at, end - at)));
  return cells;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) c == '\n' ? void(lines.emplace_back()) : void(lines.back() += c);
  return lines;
}

// Returns the rows of the first table after `heading` whose header begins with these cells. Without one the test fails.
inline Table table(const std::string& page, std::string_view header, std::string_view heading = {}) {
  const auto lines = lines_of(support::contents(source_directory() / "docs/formats" / (page + ".md")));
  auto line = heading.empty() ? lines.begin() : std::ranges::find(lines, heading);
  line = std::find_if(line, lines.end(), [&](const std::string& text) { return text.starts_with(header); });
  Table rows;
  for (std::size_t i = 0; line != lines.end() && line->starts_with('|'); ++line, ++i) {
    if (i >= 2) rows.push_back(cells_of(*line));
  }
  EXPECT_FALSE(rows.empty()) << "docs/formats/" << page << ".md needs a table " << header << " after " << heading;
  return rows;
}

// Returns the texts in code font.
inline std::vector<std::string> codes(std::string_view cell) {
  std::vector<std::string> found;
  for (std::size_t begin = 0; (begin = cell.find('`', begin)) != std::string_view::npos;) {
    const std::size_t end = cell.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    found.emplace_back(cell.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return found;
}
// Returns the first text in code font; empty if there is none.
inline std::string code(std::string_view cell) {
  const auto all = codes(cell);
  return all.empty() ? std::string() : all.front();
}

// Returns the number at the beginning.
inline std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_EQ(error, std::errc()) << "\"" << text << "\" does not begin with a number";
  return value;
}
inline std::uint64_t count(std::string_view text) { return static_cast<std::uint64_t>(number(text)); }
inline float real(const std::string& text) { return std::stof(text); }

// Returns all numbers of a text, in order.
inline std::vector<std::int64_t> numbers(std::string_view text) {
  std::vector<std::int64_t> all;
  const std::string_view digits = "-0123456789";
  for (std::size_t at = 0; (at = text.find_first_of(digits, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(digits, at), text.size());
    all.push_back(number(text.substr(at, end - at)));
    at = end;
  }
  return all;
}

// Expects that a table of limits has these labels and numbers.
inline void expect_limits(const Table& rows, const std::map<std::string, std::uint64_t>& limits) {
  std::map<std::string, std::uint64_t> found;
  for (const Row& row : rows) found[row.at(0)] = count(row.at(1));
  EXPECT_EQ(found, limits);
}

inline std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// Returns types of tokens by the names that pages give them.
inline const std::map<std::string, TokenType>& token_types() {
  static const std::map<std::string, TokenType> types = [] {
    std::map<std::string, TokenType> all;
    for (const TokenType type :
         {TokenType::normal, TokenType::byte, TokenType::control, TokenType::unknown, TokenType::unused, TokenType::bos,
          TokenType::eos, TokenType::pad, TokenType::user_defined})
      all.emplace(upper(std::string(to_string(type))), type);
    return all;
  }();
  return types;
}

// Reads a file by the fields that a page lists: names and types.
class FieldReader {
 public:
  explicit FieldReader(std::vector<std::byte> file) : file_(std::move(file)) {}

  std::size_t position() const { return at_; }
  bool at_end() const { return at_ == file_.size(); }

  // Takes bytes. Throws std::runtime_error at the end of the file, so that a test ends if the page is wrong.
  std::string take(std::size_t bytes) {
    if (bytes > file_.size() - at_) throw std::runtime_error(fmt::format("{} bytes at {} are not there", bytes, at_));
    const std::string text(reinterpret_cast<const char*>(file_.data()) + at_, bytes);
    at_ += bytes;
    return text;
  }
  template <typename Number>
  Number take() {
    const std::string bytes = take(sizeof(Number));
    return load_le<Number>(reinterpret_cast<const std::byte*>(bytes.data()));
  }

  // Takes a field of a type of the page, and returns it as text.
  std::string field(std::string_view type) {
    if (type == "text") return take(static_cast<std::size_t>(take<std::int32_t>()));
    if (type == "u8") return fmt::format("{}", take<std::uint8_t>());
    if (type == "i8") return fmt::format("{}", take<std::int8_t>());
    if (type == "u32") return fmt::format("{}", take<std::uint32_t>());
    if (type == "i32") return fmt::format("{}", take<std::int32_t>());
    if (type == "i64") return fmt::format("{}", take<std::int64_t>());
    if (type == "f32") return fmt::format("{}", take<float>());
    ADD_FAILURE() << "a field of type " << type;
    return {};
  }

  std::map<std::string, std::string> fields(const Table& rows) {
    std::map<std::string, std::string> found;
    for (const Row& row : rows) found[code(row.at(0))] = field(row.at(1));
    return found;
  }

  void pad_to(std::size_t alignment) {
    const std::string padding = take((alignment - at_ % alignment) % alignment);
    EXPECT_EQ(padding.find_first_not_of('\0'), std::string::npos) << "padding before " << at_;
  }

 private:
  std::vector<std::byte> file_;
  std::size_t at_ = 0;
};

// Holds the values of names in a cell such as "[V, D]" or "[n_kv_heads * head, dim]".
using Sizes = std::map<std::string, std::uint64_t>;
inline std::uint64_t product(std::string_view text, const Sizes& sizes) {
  std::uint64_t result = 1;
  std::size_t at = 0;
  bool divides = false;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word(text.substr(at, end - at));
    at = end + 1;
    if (word == "*" || word == "/") {
      divides = word == "/";
      continue;
    }
    const std::uint64_t value = sizes.contains(word) ? sizes.at(word) : count(word);
    result = divides ? result / value : result * value;
  }
  return result;
}
inline std::uint64_t sum(std::string_view text, const Sizes& sizes) {
  std::uint64_t result = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(" + ", at), text.size());
    result += product(text.substr(at, end - at), sizes);
    at = end + 3;
  }
  return result;
}
inline Shape shape_of(std::string_view cell, const Sizes& sizes) {
  Shape shape;
  const std::string_view inside = cell.substr(1, cell.size() - 2);
  for (std::size_t at = 0; at <= inside.size();) {
    const std::size_t end = std::min(inside.find(", ", at), inside.size());
    shape.push_back(product(inside.substr(at, end - at), sizes));
    at = end + 2;
  }
  return shape;
}

}  // namespace poise::page
