#include "io/source_range.hpp"

#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/bytes.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

TEST(SplicedSource, ReadsItsPiecesOneAfterTheOther) {
  const SourcePtr file = support::source("0123456789", "file");
  const SourcePtr made = support::source("abc", "made");
  const SourcePtr spliced = make_spliced_source("both", {{file, 2, 4}, {made, 0, 0}, {made, 0, 3}, {file, 9, 1}});
  const std::string whole = "2345abc9";
  ASSERT_EQ(spliced->size(), whole.size());
  EXPECT_EQ(spliced->name(), "both");
  for (std::size_t begin = 0; begin <= whole.size(); ++begin) {
    for (std::size_t count = 0; count <= whole.size() - begin; ++count) {
      std::vector<std::byte> piece(count);
      spliced->read(begin, piece);
      EXPECT_EQ(support::to_string(piece), whole.substr(begin, count)) << begin;
    }
  }
  std::vector<std::byte> beyond(2);
  EXPECT_EQ(support::error_of([&] { spliced->read(7, beyond); }).kind(), ErrorKind::internal);
}

}  // namespace
}  // namespace poise
