#include "views/integer_blobs.hpp"

#include <gtest/gtest.h>

#include "support/bytes.hpp"

namespace poise {
namespace {

BlobPtr integers(std::initializer_list<std::int64_t> values) {
  std::string bytes;
  for (const std::int64_t value : values) bytes += support::le(static_cast<std::uint64_t>(value), 8);
  const auto all = std::as_bytes(std::span(bytes));
  return make_memory_blob({all.begin(), all.end()}, "integers");
}

TEST(RaisedIntegers, EachIsTheSum) {
  const BlobPtr raised = make_raised_integers_blob(integers({-128, -1, 0, 127, INT64_MAX}), 128);
  EXPECT_EQ(read_all(*raised), read_all(*integers({0, 127, 128, 255, INT64_MIN + 127})));
}

TEST(RaisedIntegers, AnyBytesOfThemAreTheSame) {
  std::string bytes;
  for (int i = 0; i < 2000; ++i) bytes += support::le(static_cast<std::uint64_t>(i) * 0x123456789, 8);
  const auto all = std::as_bytes(std::span(bytes));
  const BlobPtr raised = make_raised_integers_blob(make_memory_blob({all.begin(), all.end()}, "integers"), 250);
  const std::vector<std::byte> whole = read_all(*raised);
  for (const std::size_t begin : {0U, 1U, 7U, 4093U, 8190U}) {
    for (const std::size_t count : {1U, 8U, 13U, 5001U}) {
      std::vector<std::byte> part(count);
      raised->read(begin, part);
      EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(begin, count))) << begin << " " << count;
    }
  }
}

}  // namespace
}  // namespace poise
