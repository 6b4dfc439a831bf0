#include "bytes/number_text.hpp"

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(NumberText, TakesWholeTextsAlone) {
  EXPECT_EQ(number_from<int>("-12"), -12);
  EXPECT_EQ(number_from<double>("1e3"), 1000.0);
  for (const char* wrong : {"", " 1", "1 ", "1x", "0x1", "99999999999"}) EXPECT_FALSE(number_from<int>(wrong)) << wrong;
  for (const char* wrong : {"inf", "nan", "1e999"}) EXPECT_FALSE(number_from<double>(wrong)) << wrong;
}

TEST(NumberText, KnowsUnitsOfSizes) {
  EXPECT_EQ(size_from("512"), 512U);
  EXPECT_EQ(size_from("64KiB"), 65536U);
  EXPECT_EQ(size_from("500KB"), 500000U);
  EXPECT_EQ(size_from("1 mb"), 1000000U);
  EXPECT_EQ(size_from("15E"), 15'000'000'000'000'000'000U);
  for (const char* wrong : {"", "K", "-1", "1.5GB", "1KBB", "1 bit", "20E", "1iB"})
    EXPECT_FALSE(size_from(wrong)) << wrong;
}

TEST(NumberText, MakesSmallLettersOfAscii) { EXPECT_EQ(to_lower_ascii("Q4_K_M Ä"), "q4_k_m Ä"); }

}  // namespace
}  // namespace poise
