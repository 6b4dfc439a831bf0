#include "views/computed_blob.hpp"

#include <algorithm>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/source.hpp>

namespace poise {
namespace {

// Holds zeros that take 1000 stored bytes.
class CompressedZeros final : public Blob {
 public:
  explicit CompressedZeros(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte> out) const override { std::ranges::fill(out, std::byte{0}); }
  std::optional<Stored> stored() const override {
    return Stored{{Source::from_memory({}, "file.zt"), 64, 1000}, "zstd"};
  }

 private:
  std::uint64_t size_;
};

TEST(LoadedBlob, TakesNoMoreMemoryThanTheFileJustifies) {
  constexpr std::uint64_t kMost = (16 << 20) + 16 * 1000;
  EXPECT_EQ(LoadedBlob(std::make_shared<CompressedZeros>(kMost)).bytes().size(), kMost);
  EXPECT_THAT([&] { LoadedBlob(std::make_shared<CompressedZeros>(kMost + 1)); },
              ::testing::Throws<Error>(
                  ::testing::AllOf(::testing::Property(&Error::kind, ErrorKind::unsupported),
                                   ::testing::Property(&Error::what, ::testing::HasSubstr("1000 stored bytes")))));
}

TEST(LoadedBlob, IndicesAreNumbersWithoutASign) {
  const LoadedBlob loaded(make_memory_blob({std::byte{0x7f}, std::byte{0xff}}, "i8"));
  EXPECT_EQ(loaded.index_at<std::int8_t>(0), 127);
  EXPECT_EQ(loaded.at<std::int8_t>(1), -1);
}

}  // namespace
}  // namespace poise
