#include "io/read_fully.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace poise {
namespace {

class Threes final : public Blob {
 public:
  std::uint64_t size() const override { return 5; }
  void read(std::uint64_t, std::span<std::byte> out) const override { std::ranges::fill(out, std::byte{3}); }
};

TEST(WholeBlob, BorrowsWhatIsInMemory) {
  const BlobPtr blob = make_memory_blob(std::vector<std::byte>(7), "memory");
  EXPECT_EQ(WholeBlob(blob).bytes().data(), blob->map()->data());
  EXPECT_EQ(WholeBlob(blob).bytes().size(), 7U);
}

TEST(WholeBlob, CopiesWhatIsComputed) {
  const WholeBlob whole(std::make_shared<Threes>());
  EXPECT_TRUE(std::ranges::equal(whole.bytes(), std::vector<std::byte>(5, std::byte{3})));
}

TEST(WholeBlob, KeepsTheBlobThatItBorrowsFrom) {
  BlobPtr blob = make_memory_blob(std::vector<std::byte>(100, std::byte{9}), "memory");
  const WholeBlob whole(std::move(blob));
  EXPECT_EQ(whole.bytes()[99], std::byte{9});
}

}  // namespace
}  // namespace poise
