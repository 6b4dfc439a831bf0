// Casts as blobs: the elements that reads get, counts, and overflows. Expected numbers are computed by hand;
// casts_against_numpy.py compares all numbers with NumPy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <poise/error.hpp>

#include "support/errors.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;

template <typename T>
BlobPtr blob_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return make_memory_blob({bytes.begin(), bytes.end()}, "memory");
}

// Holds the same bytes, but cannot be borrowed.
class Unmapped final : public Blob {
 public:
  explicit Unmapped(BlobPtr blob) : blob_(std::move(blob)) {}
  std::uint64_t size() const override { return blob_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { blob_->read(offset, out); }

 private:
  BlobPtr blob_;
};

template <typename T>
std::vector<T> values_of(const Blob& blob) {
  std::vector<T> values(blob.size() / sizeof(T));
  blob.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

// Returns a cast. Requires: the types differ.
template <typename T>
LossyBlobPtr<CastStats> cast(const std::vector<T>& values, DType from, DType to) {
  LossyBlobPtr<CastStats> made;
  const BlobPtr blob =
      make_cast_blob("w", blob_of(values), from, values.size() * sizeof(T) * 8 / info(from).bits, to, &made);
  EXPECT_EQ(blob, made);
  return made;
}

// Returns the loss of all elements of a cast.
CastStats lost(const LossyBlobPtr<CastStats>& blob) {
  CastStats stats;
  std::vector<std::byte> bytes(blob->size());
  blob->read_measured(0, bytes, &stats);
  EXPECT_EQ(bytes, read_all(*blob));
  return stats;
}

std::string failure_of(const Blob& blob) {
  const Error error = support::error_of([&] { read_all(blob); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  return error.what();
}

TEST(Cast, EveryRangeOfBytesIsThatOfTheWhole) {
  std::vector<std::uint16_t> halves(9000);  // more than two blocks
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  for (const BlobPtr& data : {blob_of(halves), BlobPtr(std::make_shared<Unmapped>(blob_of(halves)))}) {
    for (const DType to : {DType::f32, DType::bf16}) {
      const BlobPtr blob = make_cast_blob("w", data, DType::f16, halves.size(), to);
      const std::vector<std::byte> whole = read_all(*blob);
      for (const std::size_t offset : {0U, 1U, 2U, 3U, 4U, 5U, 4095U, 4096U, 8191U, 16383U, 16385U}) {
        for (const std::size_t size : {0U, 1U, 2U, 3U, 7U, 4096U, 16384U}) {
          std::vector<std::byte> part(std::min(size, whole.size() - offset));
          blob->read(offset, part);
          EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)))
              << offset << " " << size;
        }
      }
    }
  }
}

TEST(Cast, CountsWhatIsLost) {
  // 2^-24 is the smallest number of f16, 2^-14 its smallest normal one; 1 + 2^-11 lies in the middle, and goes to 1.
  const std::vector<float> values = {1, 0, 0x1p-24F, 0x1p-26F, -0x1p-30F, 0x1.8p-15F, 1 + 0x1p-11F, -INFINITY, NAN};
  const CastStats stats = lost(cast(values, DType::f32, DType::f16));
  EXPECT_EQ(stats.values, 9U);
  EXPECT_EQ(stats.to_zero, 2U);
  EXPECT_EQ(stats.to_subnormal, 2U);
  EXPECT_EQ(stats.not_finite, 2U);
  EXPECT_EQ(stats.worst_error, 0x1p-11);
}

TEST(Cast, CountsWhatIsNotFiniteFromEveryType) {
  const auto bad = [](const LossyBlobPtr<CastStats>& blob) { return lost(blob).not_finite; };
  std::vector<std::uint16_t> halves(5000, 0x3c00);
  halves[0] = 0x7c00;
  halves[1] = 0x3f80;  // a bfloat16 number
  halves[4999] = 0xfe00;
  for (const DType to : {DType::f32, DType::bf16}) EXPECT_EQ(bad(cast(halves, DType::f16, to)), 2U);
  LossyBlobPtr<CastStats> unmapped;
  make_cast_blob("w", std::make_shared<Unmapped>(blob_of(halves)), DType::f16, 5000, DType::f32, &unmapped);
  EXPECT_EQ(bad(unmapped), 2U);
  halves[2] = 0x7f80;
  halves[3] = 0xffc0;
  for (const DType to : {DType::f32, DType::f16}) {
    std::vector<std::uint16_t> small(halves.begin(), halves.begin() + 4);
    small[0] = 0x3c00;
    EXPECT_EQ(bad(cast(small, DType::bf16, to)), 2U);
  }
  for (const DType to : {DType::f32, DType::f16})
    EXPECT_EQ(bad(cast(std::vector<double>{1, INFINITY, -INFINITY, NAN}, DType::f64, to)), 3U);
}

TEST(Cast, CountsTheElementsThatAreRead) {
  const LossyBlobPtr<CastStats> lossy = cast(std::vector<float>(10'000, 0x1p-30F), DType::f32, DType::f16);
  CastStats stats;
  std::vector<std::byte> bytes(2 * 5000);
  for (int i = 0; i < 3; ++i) lossy->read_measured(2 * 100, bytes, &stats);
  EXPECT_EQ(stats.values, 15'000U);
  EXPECT_EQ(stats.to_zero, 15'000U);
}

TEST(Cast, CountsWhereNothingIsComputed) {
  const LossyBlobPtr<CastStats> wide = cast(std::vector<std::uint16_t>(10'000, 0x3c00), DType::f16, DType::f32);
  EXPECT_EQ(lost(wide).values, 10'000U);
  EXPECT_EQ(lost(wide).worst_error, 0);
}

TEST(Cast, CountsOfFloat64AreThoseOfFloat32) {
  const std::vector<float> narrow = {1.0F / 3, 0x1p-24F, 0x1p-26F, 70000.0F / 2, -0x1.8p-15F, 0};
  const std::vector<double> wide(narrow.begin(), narrow.end());
  for (const DType to : {DType::f16, DType::bf16}) {
    const CastStats from_narrow = lost(cast(narrow, DType::f32, to));
    const CastStats from_wide = lost(cast(wide, DType::f64, to));
    EXPECT_EQ(read_all(*cast(narrow, DType::f32, to)), read_all(*cast(wide, DType::f64, to)));
    EXPECT_EQ(from_narrow.values, from_wide.values);
    EXPECT_EQ(from_narrow.to_zero, from_wide.to_zero);
    EXPECT_EQ(from_narrow.to_subnormal, from_wide.to_subnormal);
    EXPECT_EQ(from_narrow.worst_error, from_wide.worst_error);
  }
}

TEST(Cast, OverflowSuggestsFloat32WhereThatHelps) {
  const auto remedies = [](const BlobPtr& blob) {
    try {
      read_all(*blob);
    } catch (const Error& error) {
      return error.remedies();
    }
    return std::vector<Remedy>{{Remedy::Kind::skip, "nothing was thrown"}};
  };
  EXPECT_EQ(remedies(cast(std::vector<float>{1e9F}, DType::f32, DType::f16)),
            (std::vector<Remedy>{{Remedy::Kind::dtype, "f32"}}));
  EXPECT_EQ(remedies(cast(std::vector<double>{1e39}, DType::f64, DType::f32)), std::vector<Remedy>{});
}

TEST(Cast, OverflowNamesTensorAndElement) {
  std::vector<float> values(5000, 1);
  values[4999] = 65520;  // 65504 is the largest f16, from the middle to the next one on it is infinite
  EXPECT_EQ(failure_of(*cast(values, DType::f32, DType::f16)), "tensor w: element 4999 (65520) is too large for f16");
  values[4999] = 65519;
  EXPECT_NO_THROW(read_all(*cast(values, DType::f32, DType::f16)));
  values[7] = -std::numeric_limits<float>::max();
  EXPECT_EQ(failure_of(*cast(values, DType::f32, DType::bf16)),
            "tensor w: element 7 (-3.40282e+38) is too large for bf16");
  EXPECT_EQ(failure_of(*cast(std::vector<double>{0, 1e39}, DType::f64, DType::f32)),
            "tensor w: element 1 (1e+39) is too large for f32");
  EXPECT_EQ(failure_of(*cast(std::vector<std::uint8_t>(9, 0xfe), DType::f8_e8m0, DType::f16)),
            "tensor w: element 0 (1.70141e+38) is too large for f16");
  EXPECT_NO_THROW(read_all(*cast(std::vector<float>{INFINITY, -INFINITY, NAN}, DType::f32, DType::f16)));
}

// All sixteen numbers, as the Microscaling Formats specification of the Open Compute Project lists them.
constexpr std::array<float, 8> kF4 = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};

TEST(Cast, F4HasTheElementWithTheEvenIndexInTheLowHalf) {
  std::vector<std::uint8_t> codes;
  for (unsigned code = 0; code < 16; code += 2) codes.push_back(static_cast<std::uint8_t>(code | (code + 1) << 4));
  const auto values = values_of<float>(*cast(codes, DType::f4_e2m1, DType::f32));
  ASSERT_EQ(values.size(), 16U);
  for (std::size_t code = 0; code < 16; ++code) {
    EXPECT_EQ(values[code], code < 8 ? kF4[code] : -kF4[code - 8]);
    EXPECT_EQ(std::signbit(values[code]), code >= 8);
  }
}

TEST(Cast, F4OfAnOddNumberOfElements) {
  const std::vector<std::uint8_t> codes = {0x21, 0x43, 0x05};
  for (const BlobPtr& data : {blob_of(codes), BlobPtr(std::make_shared<Unmapped>(blob_of(codes)))}) {
    const Tensor tensor = make_dense("w", {5}, DType::f4_e2m1, data);
    ASSERT_TRUE(has_float_elements(tensor));
    const BlobPtr blob = make_dense_blob(tensor, DType::f32);
    EXPECT_THAT(values_of<float>(*blob), ElementsAre(0.5F, 1, 1.5F, 2, 3));
    EXPECT_THAT(values_of<std::uint16_t>(*make_dense_blob(tensor, DType::bf16)),
                ElementsAre(0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040));
    for (std::size_t first = 0; first < 5; ++first) {
      float element = 0;
      blob->read(first * 4, std::as_writable_bytes(std::span(&element, 1)));
      EXPECT_EQ(element, kF4[first + 1]);
    }
  }
}

TEST(Cast, F4BeyondABlockBeginsAtTheRightHalf) {
  std::vector<std::uint8_t> codes(5000, 0x21);
  const BlobPtr blob =
      make_cast_blob("w", std::make_shared<Unmapped>(blob_of(codes)), DType::f4_e2m1, 9999, DType::f16);
  std::vector<std::uint16_t> halves(9998);
  blob->read(2, std::as_writable_bytes(std::span(halves)));
  for (std::size_t i = 0; i < halves.size(); ++i) ASSERT_EQ(halves[i], i % 2 == 0 ? 0x3c00 : 0x3800) << i;
}

TEST(Cast, ValuesOfSparseTensorsMayTakeLessThanAByte) {
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = {6};
  tensor.layout = Layout::sparse_coo;
  tensor.parts = {
      {.role = "values", .dtype = DType::f4_e2m1, .blob = blob_of<std::uint8_t>({0x21, 0x03}), .digest = {}},
      {.role = "coords", .dtype = DType::u8, .blob = blob_of<std::uint8_t>({5, 0, 2}), .digest = {}}};
  EXPECT_EQ(find_element_type(tensor), DType::f32);
  EXPECT_THAT(values_of<float>(*make_dense_blob(tensor, DType::f32)), ElementsAre(1, 0, 1.5F, 0, 0, 0.5F));
  EXPECT_THAT(values_of<float>(*make_dense_tensor(tensor).require("data").blob), ElementsAre(1, 0, 1.5F, 0, 0, 0.5F));
}

TEST(Cast, OnlyRealFloatingPointNumbersAreWidened) {
  for (const DType dtype : {DType::complex64, DType::complex128, DType::i64, DType::boolean}) {
    EXPECT_FALSE(can_widen(dtype));
    EXPECT_FALSE(has_float_elements(make_dense("w", {0}, dtype, make_memory_blob({}, "memory"))));
  }
}

}  // namespace
}  // namespace poise
