#include "bytes/utf8.hpp"

#include <cctype>

#include <gtest/gtest.h>

namespace poise {
namespace {

// Expected: <cctype> in the locale "C". Bytes of other characters belong to no class.
TEST(Ascii, ClassifiesCharactersAsC) {
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    const bool is_ascii = i < 128;
    EXPECT_EQ(is_ascii_digit(c), is_ascii && std::isdigit(i) != 0) << i;
    EXPECT_EQ(is_ascii_lower(c), is_ascii && std::islower(i) != 0) << i;
    EXPECT_EQ(is_ascii_upper(c), is_ascii && std::isupper(i) != 0) << i;
    EXPECT_EQ(is_ascii_letter(c), is_ascii && std::isalpha(i) != 0) << i;
    EXPECT_EQ(is_ascii_alphanumeric(c), is_ascii && std::isalnum(i) != 0) << i;
    EXPECT_EQ(is_ascii_space(c), is_ascii && std::isspace(i) != 0) << i;
    EXPECT_EQ(is_ascii_punctuation(c), is_ascii && std::ispunct(i) != 0) << i;
    EXPECT_EQ(parse_hex_digit(c) >= 0, is_ascii && std::isxdigit(i) != 0) << i;
    EXPECT_EQ(to_lower_ascii(c), is_ascii ? static_cast<char>(std::tolower(i)) : c) << i;
    EXPECT_EQ(to_upper_ascii(c), is_ascii ? static_cast<char>(std::toupper(i)) : c) << i;
  }
  EXPECT_EQ(parse_hex_digit('7'), 7);
  EXPECT_EQ(parse_hex_digit('a'), 10);
  EXPECT_EQ(parse_hex_digit('F'), 15);
}

TEST(Ascii, ConvertsTextToLowerCase) { EXPECT_EQ(to_lower_ascii(std::string_view("Q4_K_M Ä")), "q4_k_m Ä"); }

}  // namespace
}  // namespace poise
