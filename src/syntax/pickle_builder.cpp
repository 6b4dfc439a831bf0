#include "syntax/pickle_builder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"

namespace poise::pickle {
namespace {

// What objects take of the memory that a pickle may ask for.
constexpr std::uint64_t kListBytes = sizeof(std::vector<Id>) + 32;
constexpr std::uint64_t kCallBytes = sizeof(Call) + 176;  // with what is made of one, such as a tensor

// True if only surrogates, which UTF-8 would encode as ED A0 80 to ED BF BF, are wrong.
bool is_utf8_but_for_surrogates(std::string text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (std::size_t at = 0; at + 2 < text.size(); ++at) {
    if (byte(at) == 0xed && byte(at + 1) >= 0xa0 && byte(at + 1) <= 0xbf && (byte(at + 2) & 0xc0U) == 0x80)
      text.replace(at, 3, "   ");
  }
  return is_utf8(text);
}

// Lines of UNICODE are in Latin-1.
void append_character(std::string& text, char character, bool is_latin1) {
  if (is_latin1) {
    append_utf8(text, static_cast<unsigned char>(character));
  } else {
    text += character;
  }
}

std::optional<std::uint32_t> parse_hex(std::string_view digits) {
  std::uint32_t value = 0;
  for (const char digit : digits) {
    const bool is_digit = digit >= '0' && digit <= '9';
    const char lower = static_cast<char>(digit | 0x20);
    if (!is_digit && (lower < 'a' || lower > 'f')) return std::nullopt;
    value = value << 4 | static_cast<std::uint32_t>(is_digit ? digit - '0' : lower - 'a' + 10);
  }
  return value;
}

// Digits of a number outside 64 bits as bytes, two's complement, the lowest first. Empty for more digits than anything
// but a flood has.
std::string wide_integer_bytes(std::string_view digits, bool is_negative) {
  constexpr std::size_t kMostDigits = 64;
  std::string bytes;
  if (digits.size() > kMostDigits) return bytes;
  for (const char digit : digits) {
    auto carry = static_cast<unsigned>(digit - '0');
    for (char& byte : bytes) {
      const unsigned value = 10U * static_cast<unsigned char>(byte) + carry;
      byte = static_cast<char>(value);
      carry = value >> 8;
    }
    if (carry != 0) bytes += static_cast<char>(carry);
  }
  bytes += '\0';  // the sign
  if (!is_negative) return bytes;
  unsigned carry = 1;
  for (char& byte : bytes) {
    const unsigned value = (~static_cast<unsigned char>(byte) & 0xffU) + carry;
    byte = static_cast<char>(value);
    carry = value >> 8;
  }
  return bytes;
}

}  // namespace

Builder::Builder(Program& program, std::uint64_t begin, Pickle& result) : program_(program), result_(result) {
  result_.bytes_ = program.bytes();
  result_.begin_ = begin;
  for (const Kind kind : {Kind::none, Kind::boolean, Kind::boolean, Kind::tuple})
    result_.nodes_.push_back({.kind = kind});
  result_.nodes_[kTrue].first = 1;
}

Id Builder::make(Kind kind, std::uint64_t first, std::uint64_t second) {
  program_.charge(sizeof(Node));
  result_.nodes_.push_back(
      {first, static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(program_.step_at()), kind});
  return static_cast<Id>(result_.nodes_.size() - 1);
}

Id Builder::integer(std::span<const std::byte> bytes) {
  if (bytes.size() > 8) return make(Kind::wide_integer, program_.position() - bytes.size(), bytes.size());
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  std::array<std::byte, 8> all;
  all.fill(negative ? std::byte{0xff} : std::byte{0});
  std::ranges::copy(bytes, all.begin());
  return integer(load_le<std::int64_t>(all.data()));
}

Id Builder::real(double value) { return make(Kind::real, std::bit_cast<std::uint64_t>(value)); }

Id Builder::integer_of_line(std::string_view text, std::string_view what) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    program_.fail(fmt::format("{}: expected an integer", what));
  if (const auto value = number_from<std::int64_t>(text)) return integer(*value);
  return made_text(Kind::wide_integer, wide_integer_bytes(digits, text.starts_with('-')));
}

Id Builder::real_of_line(std::string_view text) {
  if (text == "nan") return real(std::numeric_limits<double>::quiet_NaN());
  if (text == "inf" || text == "-inf")
    return real(text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  const auto value = number_from<double>(text);
  if (!value) program_.fail("FLOAT: expected a number");
  return real(*value);
}

Id Builder::text(Kind kind, std::uint64_t length) {
  const std::span<const std::byte> bytes = program_.raw(length, kind == Kind::text ? "text" : "bytes");
  const std::uint64_t at = program_.position() - bytes.size();
  if (kind != Kind::text || is_utf8(as_text(bytes))) return make(kind, at, bytes.size());
  if (!is_utf8_but_for_surrogates(std::string(as_text(bytes)))) program_.fail("the text is not UTF-8");
  return with_surrogate(make(Kind::bytes, at, bytes.size()));
}

Id Builder::with_surrogate(Id id) {
  if (!result_.lone_surrogate_) result_.lone_surrogate_ = id;
  return id;
}

Id Builder::string(std::uint64_t length) {
  const std::span<const std::byte> bytes = program_.raw(length, "text");
  return make(is_utf8(as_text(bytes)) ? Kind::text : Kind::bytes, program_.position() - bytes.size(), bytes.size());
}

Id Builder::made_text(Kind kind, std::string text) {
  program_.charge(sizeof(std::string) + text.size());
  result_.made_texts_.push_back(std::move(text));
  return make(kind, Pickle::kMade | (result_.made_texts_.size() - 1));
}

Id Builder::text_in_quotes(std::string_view line) {
  if (line.size() < 2 || (line.front() != '\'' && line.front() != '"') || line.back() != line.front())
    program_.fail("STRING: expected text in quotes");
  return unescaped(line.substr(1, line.size() - 2), false);
}

Id Builder::unicode_of_line(std::string_view line) { return unescaped(line, true); }

Id Builder::unescaped(std::string_view text, bool is_unicode) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      append_character(result, text[at++], is_unicode);
      continue;
    }
    const char kind = text[at + 1];
    const std::size_t digits = kind == 'u' && is_unicode ? 4 : kind == 'U' && is_unicode ? 8 : kind == 'x' ? 2 : 0;
    if (digits == 0) {
      static constexpr std::string_view kLetters = "nrt\\'\"";
      static constexpr std::string_view kMeanings = "\n\r\t\\'\"";
      const std::size_t meant = is_unicode ? std::string_view::npos : kLetters.find(kind);
      result += meant == std::string_view::npos ? '\\' : kMeanings[meant];
      at += meant == std::string_view::npos ? 1 : 2;
      continue;
    }
    const auto code = at + 2 + digits <= text.size() ? parse_hex(text.substr(at + 2, digits)) : std::nullopt;
    if (!code || *code > 0x10ffff) program_.fail("an escape in a text is wrong");
    if (is_unicode) {
      append_utf8(result, static_cast<char32_t>(*code));
    } else {
      result += static_cast<char>(*code);
    }
    at += 2 + digits;
  }
  const bool is_text = is_utf8(result);
  if (is_unicode && !is_text && !is_utf8_but_for_surrogates(result)) program_.fail("the text is not Unicode");
  const Id id = made_text(is_text ? Kind::text : Kind::bytes, std::move(result));
  return is_unicode && !is_text ? with_surrogate(id) : id;
}

Id Builder::list(Kind kind, std::vector<Id> items) {
  program_.charge(kListBytes + items.size() * sizeof(Id));
  result_.lists_.push_back(std::move(items));
  return make(kind, result_.lists_.size() - 1);
}

Id Builder::tuple(const std::vector<Id>& items) {
  program_.charge(items.size() * sizeof(Id));
  if (items.empty()) return kEmptyTuple;
  const std::size_t begin = result_.tuples_.size();
  result_.tuples_.insert(result_.tuples_.end(), items.begin(), items.end());
  return make(Kind::tuple, begin, items.size());
}

Id Builder::global(std::string_view module, std::string_view name) {
  program_.charge(sizeof(Global));
  result_.globals_.push_back({module, name});
  return make(Kind::global, result_.globals_.size() - 1);
}

Id Builder::extension(std::uint32_t code) {
  program_.charge(64);
  result_.made_texts_.push_back(fmt::format("extension {}", code));
  return global("copyreg", result_.made_texts_.back());
}

Id Builder::call(Id function, Id arguments, std::string_view what) {
  const Kind kind = result_.kind(function);
  if (kind != Kind::global && kind != Kind::call && kind != Kind::persistent)
    program_.fail(fmt::format("{}: what is called is neither a function nor a class", what));
  program_.charge(kCallBytes);
  result_.calls_.push_back({function, arguments});
  return make(Kind::call, result_.calls_.size() - 1);
}

void Builder::set_state(Id target, Id state) {
  if (result_.kind(target) != Kind::call) program_.fail("BUILD: only what a call makes can be given a state");
  result_.calls_[static_cast<std::size_t>(result_.nodes_[target].first)].state = state;
}

void Builder::append(Id target, const std::vector<Id>& items, std::string_view what) {
  program_.charge(items.size() * sizeof(Id));
  const Node& node = result_.nodes_[target];
  const auto index = static_cast<std::size_t>(node.first);
  const bool is_list = node.kind == Kind::list || node.kind == Kind::set;
  if (!is_list && node.kind != Kind::call) program_.fail(fmt::format("{}: there is no list", what));
  std::vector<Id>& to = is_list ? result_.lists_[index] : result_.calls_[index].items;
  to.insert(to.end(), items.begin(), items.end());
}

void Builder::set(Id target, const std::vector<Id>& pairs, std::string_view what) {
  program_.charge(pairs.size() * sizeof(Id));
  const Node& node = result_.nodes_[target];
  const auto index = static_cast<std::size_t>(node.first);
  if (node.kind != Kind::dict && node.kind != Kind::call) program_.fail(fmt::format("{}: there is no dict", what));
  std::vector<Id>& to = node.kind == Kind::dict ? result_.lists_[index] : result_.calls_[index].pairs;
  to.insert(to.end(), pairs.begin(), pairs.end());
}

}  // namespace poise::pickle
