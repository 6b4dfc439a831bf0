// Expected bytes are written by hand.
#include "views/row_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/bytes.hpp"

namespace poise {
namespace {

BlobPtr blob(std::string_view text) { return make_memory_blob(support::to_bytes(text), "memory"); }

std::string text(const Blob& blob) { return support::to_string(read_all(blob)); }

TEST(Joined, EveryRangeIsThatOfAll) {
  const std::string whole = "abcdefgh";
  const BlobPtr joined = make_joined_blob({blob("abc"), blob(""), blob("d"), blob("efgh")});
  EXPECT_EQ(joined->size(), 8U);
  EXPECT_EQ(text(*joined), whole);
  for (std::size_t begin = 0; begin <= whole.size(); ++begin) {
    for (std::size_t end = begin; end <= whole.size(); ++end) {
      std::vector<std::byte> part(end - begin);
      joined->read(begin, part);
      EXPECT_EQ(support::to_string(part), whole.substr(begin, end - begin));
    }
  }
}

TEST(Joined, AStreamFillsEveryReadButTheLast) {
  const std::string whole = "abcdefgh";
  const BlobPtr joined = make_joined_blob({blob("abc"), blob(""), blob("d"), blob("efgh")});
  for (std::size_t size = 1; size <= whole.size() + 1; ++size) {
    const auto stream = joined->stream();
    std::vector<std::byte> part(size);
    for (std::size_t at = 0; at < whole.size(); at += size) {
      const std::size_t count = stream->read(part);
      EXPECT_EQ(support::to_string(part).substr(0, count), whole.substr(at, size));
    }
    EXPECT_EQ(stream->read(part), 0U);
  }
}

TEST(Joined, NeighboursInAFileAreARangeOfIt) {
  const SourcePtr source = support::source("abcdefgh");
  const auto neighbours =
      make_joined_blob({make_source_blob(source, 1, 2), make_source_blob(source, 3, 4)})->raw_range();
  ASSERT_TRUE(neighbours);
  EXPECT_EQ(neighbours->offset, 1U);
  EXPECT_EQ(neighbours->length, 6U);
  const BlobPtr swapped = make_joined_blob({make_source_blob(source, 3, 4), make_source_blob(source, 1, 2)});
  EXPECT_FALSE(swapped->raw_range());
  EXPECT_EQ(text(*swapped), "defgbc");
}

// Returns bytes in pieces of a certain size.
class Grained final : public Blob {
 public:
  Grained(std::uint64_t size, std::uint64_t grain) : size_(size), grain_(grain) {}
  std::uint64_t size() const override { return size_; }
  std::uint64_t grain() const override { return grain_; }
  void read(std::uint64_t, std::span<std::byte> out) const override { std::ranges::fill(out, std::byte{7}); }

 private:
  std::uint64_t size_;
  std::uint64_t grain_;
};

TEST(Joined, ThePiecesOfAllAreThoseOfEach) {
  const auto of = [](std::uint64_t size, std::uint64_t grain) { return std::make_shared<Grained>(size, grain); };
  EXPECT_EQ(make_joined_blob({of(12, 4), of(8, 4)})->grain(), 4U);
  EXPECT_EQ(make_joined_blob({of(12, 4), of(8, 2)})->grain(), 1U);
  EXPECT_EQ(make_joined_blob({of(10, 4), of(8, 4)})->grain(), 1U);
}

}  // namespace
}  // namespace poise
