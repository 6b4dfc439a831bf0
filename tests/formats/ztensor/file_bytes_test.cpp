#include "formats/ztensor/file_bytes.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <sstream>

namespace poise::ztensor_test {
namespace {

std::string big_endian(std::uint64_t value, unsigned count) {
  std::string result;
  for (unsigned i = count; i-- > 0;) result += static_cast<char>(value >> (8 * i) & 0xff);
  return result;
}

std::string head(unsigned major, std::uint64_t argument) {
  const unsigned count = argument < 24 ? 0 : argument < 0x100 ? 1 : argument < 0x10000 ? 2 : argument < 0x100000000 ? 4 : 8;
  return long_head(major, argument, count);
}

}  // namespace

std::string hex(std::string_view digits) {
  std::string result;
  std::istringstream lines{std::string(digits)};
  for (std::string line; std::getline(lines, line);) {
    std::string pair;
    for (const char c : line.substr(0, line.find('|'))) {
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
      pair += c;
      if (pair.size() < 2) continue;
      result += static_cast<char>(std::stoi(pair, nullptr, 16));
      pair.clear();
    }
  }
  return result;
}

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

std::string u32le(std::uint32_t value) { return elements<std::uint32_t>({value}); }
std::string u64le(std::uint64_t value) { return elements<std::uint64_t>({value}); }

std::string padded(std::string file, std::size_t alignment) {
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  return file;
}

std::vector<std::byte> to_bytes(std::string_view file) {
  std::vector<std::byte> result(file.size());
  if (!file.empty()) std::memcpy(result.data(), file.data(), file.size());
  return result;
}

std::string to_string(const std::vector<std::byte>& file) { return {reinterpret_cast<const char*>(file.data()), file.size()}; }

SourcePtr source(std::string_view file, std::string name) { return Source::from_memory(to_bytes(file), std::move(name)); }

namespace {

// From RFC 8949, appendix A.
TEST(FileBytes, TheNotationAgreesWithTheStandardsExamples) {
  EXPECT_EQ(number(1000000), hex("1a 00 0f 42 40"));
  EXPECT_EQ(negative(999), hex("39 03 e7"));
  EXPECT_EQ(text("IETF"), hex("64 49 45 54 46"));
  EXPECT_EQ(bytes("\x01\x02\x03\x04"), hex("44 01 02 03 04"));
  EXPECT_EQ(array({number(1), array({number(2), number(3)})}), hex("82 01 82 02 03 | [1, [2, 3]]"));
  EXPECT_EQ(map({{text("a"), number(1)}}), hex("a1 61 61 01"));
}

}  // namespace
}  // namespace poise::ztensor_test
