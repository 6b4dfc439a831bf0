#include "support/cbor_notation.hpp"

#include <gtest/gtest.h>

#include "support/bytes.hpp"

namespace poise::support {
namespace {

std::string big_endian(std::uint64_t value, unsigned count) {
  std::string result;
  for (unsigned i = count; i-- > 0;) result += static_cast<char>(value >> (8 * i) & 0xff);
  return result;
}

std::string head(unsigned major, std::uint64_t argument) {
  const unsigned count = argument < 24            ? 0
                         : argument < 0x100       ? 1
                         : argument < 0x10000     ? 2
                         : argument < 0x100000000 ? 4
                                                  : 8;
  return long_head(major, argument, count);
}

}  // namespace

std::string long_head(unsigned major, std::uint64_t argument, unsigned argument_bytes) {
  const unsigned low = argument_bytes == 0   ? static_cast<unsigned>(argument)
                       : argument_bytes == 1 ? 24
                       : argument_bytes == 2 ? 25
                       : argument_bytes == 4 ? 26
                                             : 27;
  return static_cast<char>(major << 5 | low) + big_endian(argument, argument_bytes);
}

std::string number(std::uint64_t value) { return head(0, value); }
std::string negative(std::uint64_t minus_one_minus_value) { return head(1, minus_one_minus_value); }
std::string text(std::string_view value) { return head(3, value.size()) + std::string(value); }
std::string bytes(std::string_view value) { return head(2, value.size()) + std::string(value); }

std::string array(const std::vector<std::string>& items) {
  std::string result = head(4, items.size());
  for (const std::string& item : items) result += item;
  return result;
}

std::string map(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string result = head(5, entries.size());
  for (const auto& [key, value] : entries) result += key + value;
  return result;
}

namespace {

// From RFC 8949, appendix A.
TEST(CborNotation, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(number(1000000), hex("1a 00 0f 42 40"));
  EXPECT_EQ(negative(999), hex("39 03 e7"));
  EXPECT_EQ(text("IETF"), hex("64 49 45 54 46"));
  EXPECT_EQ(bytes("\x01\x02\x03\x04"), hex("44 01 02 03 04"));
  EXPECT_EQ(array({number(1), array({number(2), number(3)})}), hex("82 01 82 02 03 | [1, [2, 3]]"));
  EXPECT_EQ(map({{text("a"), number(1)}}), hex("a1 61 61 01"));
}

}  // namespace
}  // namespace poise::support
