#include "jinja/text.hpp"

#include <algorithm>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"

namespace poise::jinja {
namespace {

// Returns true where a capital sigma becomes a final sigma: at the end of a word.
bool is_word_end(std::string_view text, std::size_t at, std::size_t next) {
  bool before = false;
  for (std::size_t begin = at; begin > 0;) {
    do --begin;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
    const char32_t code = decode(text, begin).code;
    if (is_case_ignorable(code)) continue;
    before = is_cased(code);
    break;
  }
  if (!before) return false;
  for (std::size_t i = next; i < text.size();) {
    const Decoded here = decode(text, i);
    if (!is_case_ignorable(here.code)) return !is_cased(here.code);
    i = here.next;
  }
  return true;
}

}  // namespace

Text mark_as_input(std::string text) {
  std::string marks(text.size(), '\1');
  return {std::move(text), std::move(marks)};
}

bool is_input(const Text& text, std::size_t at) { return !text.marks.empty() && text.marks[at] != 0; }

void append(Text& to, const Text& from) { append(to, from, 0, from.size()); }

void append(Text& to, const Text& from, std::size_t begin, std::size_t end) {
  if (!to.marks.empty() || !from.marks.empty()) {
    to.marks.resize(to.bytes.size(), '\0');
    if (from.marks.empty()) {
      to.marks.append(end - begin, '\0');
    } else {
      to.marks.append(from.marks, begin, end - begin);
    }
  }
  to.bytes.append(from.bytes, begin, end - begin);
}

void append(Text& to, std::string_view bytes, bool is_input) {
  if (is_input || !to.marks.empty()) {
    to.marks.resize(to.bytes.size(), '\0');
    to.marks.append(bytes.size(), is_input ? '\1' : '\0');
  }
  to.bytes += bytes;
}

Text copy_part(const Text& text, std::size_t begin, std::size_t end) {
  Text result;
  append(result, text, begin, end);
  return result;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::vector<std::size_t> find_characters(std::string_view text) {
  std::vector<std::size_t> begins;
  begins.reserve(text.size() + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) begins.push_back(i);
  }
  begins.push_back(text.size());
  return begins;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::optional<std::int64_t> parse_index(std::string_view text) {
  const bool is_index = text.size() < 10 && std::ranges::all_of(text, is_ascii_digit);
  return is_index ? parse_number_text<std::int64_t>(text) : std::nullopt;
}

Decoded decode(std::string_view text, std::size_t at) {
  const auto read_byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = read_byte(0);
  if (lead < 0x80) return {lead, at + 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (read_byte(1) & 0x3F), at + 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (read_byte(1) & 0x3F) << 6 | (read_byte(2) & 0x3F), at + 3};
  return {(lead & 0x07) << 18 | (read_byte(1) & 0x3F) << 12 | (read_byte(2) & 0x3F) << 6 | (read_byte(3) & 0x3F),
          at + 4};
}

void append_cased(Text& to, const Text& from, std::size_t begin, std::size_t end, Case how) {
  for (std::size_t i = begin; i < end;) {
    const Decoded here = decode(from.bytes, i);
    const bool lowers = how == Case::lower || (how == Case::swap && is_upper(here.code));
    const bool is_sigma = lowers && here.code == 0x3A3;
    const char* const sigma = is_sigma && is_word_end(from.bytes, i, here.next) ? "\xcf\x82" : "\xcf\x83";
    append(to, is_sigma ? sigma : map_case(here.code, how), is_input(from, i));
    i = here.next;
  }
}

Text change_case(const Text& text, Case to) {
  Text result;
  if (to != Case::title) {
    append_cased(result, text, 0, text.size(), to);
    return result;
  }
  bool in_word = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    append_cased(result, text, i, here.next, in_word ? Case::lower : Case::title);
    in_word = is_cased(here.code);
    i = here.next;
  }
  return result;
}

}  // namespace poise::jinja
