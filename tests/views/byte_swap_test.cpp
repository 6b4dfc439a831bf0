// Expected bytes are written by hand.
#include "views/integer_blobs.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include <poise/source.hpp>

namespace poise {
namespace {

std::vector<std::byte> counted(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

std::vector<int> numbers(const std::vector<std::byte>& bytes) {
  std::vector<int> result;
  for (const std::byte byte : bytes) result.push_back(std::to_integer<int>(byte));
  return result;
}

std::vector<int> swapped(DType dtype, std::size_t size) {
  return numbers(read_all(*make_byte_swapped_blob(make_memory_blob(counted(size), "memory"), get_number_bytes(dtype))));
}

using Bytes = std::vector<int>;

TEST(ByteSwap, ReversesEveryNumber) {
  EXPECT_EQ(swapped(DType::u8, 4), (Bytes{0, 1, 2, 3}));
  EXPECT_EQ(swapped(DType::f4_e2m1, 2), (Bytes{0, 1}));
  EXPECT_EQ(swapped(DType::bf16, 4), (Bytes{1, 0, 3, 2}));
  EXPECT_EQ(swapped(DType::i32, 8), (Bytes{3, 2, 1, 0, 7, 6, 5, 4}));
  EXPECT_EQ(swapped(DType::f64, 8), (Bytes{7, 6, 5, 4, 3, 2, 1, 0}));
}

// So readers do not compare the size of such a blob with a shape.
TEST(ByteSwap, BytesOfAnUnknownEncodingStayUnknown) {
  const BlobPtr unknown = make_opaque_blob({{Source::from_memory(counted(5), "file"), 0, 5}, "lz4"}, 5, "unknown");
  EXPECT_FALSE(make_byte_swapped_blob(unknown, 4)->decodable());
  EXPECT_FALSE(make_flipped_signs_blob(unknown)->decodable());
  EXPECT_FALSE(make_raised_integers_blob(unknown, 1)->decodable());
  EXPECT_TRUE(make_byte_swapped_blob(make_memory_blob(counted(8), "memory"), 4)->decodable());
}

// The real part stays before the imaginary one.
TEST(ByteSwap, ReversesTheHalvesOfComplexNumbersByThemselves) {
  EXPECT_EQ(swapped(DType::complex64, 8), (Bytes{3, 2, 1, 0, 7, 6, 5, 4}));
  EXPECT_EQ(swapped(DType::complex128, 16), (Bytes{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}));
}

TEST(ByteSwap, EveryRangeOfBytesIsThatOfTheWhole) {
  const BlobPtr blob =
      make_byte_swapped_blob(make_memory_blob(counted(64), "memory"), get_number_bytes(DType::complex128));
  const std::vector<std::byte> whole = read_all(*blob);
  for (std::size_t begin = 0; begin <= 64; ++begin) {
    for (std::size_t end = begin; end <= 64; ++end) {
      std::vector<std::byte> part(end - begin);
      blob->read(begin, part);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)))
          << begin << " " << end;
    }
  }
  for (const std::size_t step : {1U, 3U, 8U, 64U}) {
    const auto stream = blob->stream();
    std::vector<std::byte> all;
    std::vector<std::byte> piece(step);
    while (const std::size_t count = stream->read(piece))
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(all, whole) << step;
  }
}

}  // namespace
}  // namespace poise
