#include "bytes/number_text.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(NumberText, ParsesOnlyWholeTexts) {
  EXPECT_EQ(parse_number_text<int>("-12"), -12);
  EXPECT_EQ(parse_number_text<double>("1e3"), 1000.0);
  for (const char* wrong : {"", " 1", "1 ", "1x", "0x1", "99999999999"})
    EXPECT_FALSE(parse_number_text<int>(wrong)) << wrong;
  for (const char* wrong : {"inf", "nan", "1e999"}) EXPECT_FALSE(parse_number_text<double>(wrong)) << wrong;
}

TEST(NumberText, ParsesUnitsOfSizes) {
  EXPECT_EQ(parse_size("512"), 512U);
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("500KB"), 500000U);
  EXPECT_EQ(parse_size("1 mb"), 1000000U);
  EXPECT_EQ(parse_size("15E"), 15'000'000'000'000'000'000U);
  for (const char* wrong : {"", "K", "-1", "1KBB", "1 bit", "20E", "1iB"}) EXPECT_FALSE(parse_size(wrong)) << wrong;
}

// Expected: CPython's int(decimal.Decimal(...) * unit).
TEST(NumberText, ParsesDecimalsOfSizes) {
  EXPECT_EQ(parse_size("4.2GB"), 4'200'000'000U);
  EXPECT_EQ(parse_size("4.2GiB"), 4'509'715'660U);
  EXPECT_EQ(parse_size("0.5k"), 500U);
  EXPECT_EQ(parse_size("1.0009 KB"), 1000U);
  EXPECT_EQ(parse_size("15.999999999EiB"), 18'446'744'072'556'630'111U);
  for (const char* wrong : {"1.5", "1.5B", "1.GB", ".5GB", "1.5.5GB", "1.0000000001GB", "18.446744074E", "1e3KB"})
    EXPECT_FALSE(parse_size(wrong)) << wrong;
}

// Expected: CPython's float().
TEST(NumberText, ParsesDoublesAsPythonDoes) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(parse_double("0.1"), 0.1);
  EXPECT_EQ(parse_double("-2.5e-3"), -0.0025);
  EXPECT_EQ(parse_double(".5"), 0.5);
  EXPECT_EQ(parse_double("5."), 5.0);
  EXPECT_EQ(parse_double("1e400"), infinity);
  EXPECT_EQ(parse_double("-1e400"), -infinity);
  EXPECT_EQ(parse_double("1" + std::string(400, '0')), infinity);
  EXPECT_EQ(parse_double("1" + std::string(400, '0') + "e-400"), 1.0);
  EXPECT_EQ(parse_double("0.00001e-400"), 0.0);
  EXPECT_EQ(parse_double("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_EQ(parse_double("0." + std::string(400, '0') + "1e401"), 1.0);
  EXPECT_EQ(parse_double("1e99999999999999999999"), infinity);
  EXPECT_EQ(parse_double("1e-99999999999999999999"), 0.0);
  EXPECT_EQ(parse_double("0e99999999999999999999"), 0.0);
  EXPECT_TRUE(std::signbit(parse_double("-1e-400").value()));
  EXPECT_EQ(parse_double("inf"), infinity);
  EXPECT_TRUE(std::isnan(parse_double("nan").value()));
  for (const char* wrong : {"", " 1", "1 ", "0,5", "1e", "e5", ".", "-", "+1", "0x10", "1_000"})
    EXPECT_FALSE(parse_double(wrong)) << wrong;
}

}  // namespace
}  // namespace poise
