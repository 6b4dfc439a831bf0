// Faults of scales and codes, in ALT files laid out by FileBuilder's rules and in tensors made here.
#include "ops/verify_affine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor codes(DType dtype, const std::vector<int>& bytes, std::uint64_t elements, const Affine& affine, std::optional<std::uint64_t> position = std::nullopt) {
  std::vector<std::byte> data;
  for (const int byte : bytes) data.push_back(static_cast<std::byte>(byte));
  Tensor tensor = make_dense("w", {elements}, dtype, make_memory_blob(std::move(data), "w"));
  tensor.layout = Layout::affine;
  tensor.affine = make_affine(affine, position);
  return tensor;
}

std::vector<std::string> faults_of(const Tensor& tensor) {
  std::vector<Finding> faults;
  check_affine(tensor, faults);
  std::vector<std::string> messages;
  for (const Finding& fault : faults) messages.push_back(fault.message);
  return messages;
}

TEST(VerifyAffine, GoodTensorsHaveNoFault) {
  EXPECT_THAT(faults_of(codes(DType::qint8, {1, 255, 3}, 3, {0.5F, 0, 0, false})), IsEmpty());
  EXPECT_THAT(faults_of(codes(DType::qint4, {0x21, 0x03}, 3, {0.5F, 0, 0, true})), IsEmpty());
  EXPECT_THAT(faults_of(codes(DType::qint4, {7, 0xf9, 0}, 3, {0, 0, 0, false})), IsEmpty());
}

TEST(VerifyAffine, TheScaleIsFiniteAndNotNegative) {
  for (const float delta : {-0.5F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(faults_of(codes(DType::qint8, {1}, 1, {delta, 0, 0, false})), ElementsAre(HasSubstr("tensor w: delta is"))) << delta;
  }
  EXPECT_THAT(faults_of(codes(DType::qint8, {1}, 1, {1, 0, std::numeric_limits<float>::infinity(), false})), ElementsAre(HasSubstr("min and max are")));
}

TEST(VerifyAffine, AFaultOfTheScaleLiesWhereTheScaleLies) {
  std::vector<Finding> faults;
  check_affine(codes(DType::qint8, {1}, 1, {-1, 0, 0, false}, 0x123), faults);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].offset, 0x123U);
}

TEST(VerifyAffine, TheUnusedHalfIsZero) {
  EXPECT_THAT(faults_of(codes(DType::qint4, {0x21, 0x13}, 3, {1, 0, 0, true})), ElementsAre(HasSubstr("the high half of the last byte holds no code")));
  EXPECT_THAT(faults_of(codes(DType::qint4, {0x21, 0x13}, 4, {1, 0, 0, true})), IsEmpty());
}

TEST(VerifyAffine, CodesOfAByteFitFourBits) {
  EXPECT_THAT(faults_of(codes(DType::qint4, {7, 8, 0xf8}, 3, {1, 0, 0, false})), ElementsAre("tensor w: code 1 does not fit 4 bits"));
  EXPECT_THAT(faults_of(codes(DType::qint4, {15, 16}, 2, {1, -1, 14, false})), ElementsAre("tensor w: code 1 does not fit 4 bits"));
}

}  // namespace
}  // namespace poise
