#include "model/unused_bytes.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns 256 bytes: zeros except for one byte.
SourcePtr zeros_but(std::size_t place) {
  std::vector<std::byte> bytes(256);
  bytes[place] = std::byte{1};
  return Source::from_memory(std::move(bytes), "file");
}

// Returns message and place of the findings for a file whose parts must begin on multiples of 16, and which some
// writers align to 64.
std::vector<std::pair<std::string, std::uint64_t>> unused(std::size_t place, const std::vector<FileRange>& known) {
  std::vector<Finding> findings;
  find_unused_bytes(zeros_but(place), known, std::array<std::uint64_t, 2>{16, 64}, findings);
  std::vector<std::pair<std::string, std::uint64_t>> reported;
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.severity, Severity::warning);
    EXPECT_EQ(finding.path, "file");
    reported.emplace_back(finding.message, finding.offset.value());
  }
  return reported;
}

TEST(UnusedBytes, PaddingIsZeroAndShorterThanAnAlignment) {
  EXPECT_THAT(unused(0, {{0, 10}, {16, 65}, {128, 256}}), IsEmpty());
  EXPECT_THAT(unused(12, {{0, 10}, {16, 256}}), ElementsAre(std::pair("the padding is not zero", 12)));
  EXPECT_THAT(unused(0, {{0, 10}, {20, 256}}),
              ElementsAre(std::pair("no entry of the file refers to these 10 bytes", 10)));  // 20 is not a multiple
  EXPECT_THAT(unused(0, {{0, 64}, {128, 256}}),
              ElementsAre(std::pair("no entry of the file refers to these 64 bytes", 64)));
}

// The padding ends at the next place where a part may begin; bytes after it may be a part.
TEST(UnusedBytes, InWiderPaddingMayBeAPart) {
  EXPECT_THAT(unused(100, {{0, 70}, {128, 256}}),
              ElementsAre(std::pair("no entry of the file refers to these bytes, which are not zero", 100)));
  EXPECT_THAT(unused(75, {{0, 70}, {128, 256}}), ElementsAre(std::pair("the padding is not zero", 75)));
}

TEST(UnusedBytes, RangesMayOverlapAndComeInAnyOrder) {
  EXPECT_THAT(unused(0, {{100, 256}, {0, 50}, {20, 100}}), IsEmpty());
  EXPECT_THAT(unused(200, {{0, 100}}), IsEmpty());  // the file's size is not known
}

TEST(UnusedBytes, PartsOfOneFileCount) {
  const SourcePtr here = zeros_but(0);
  Model model;
  model.add(make_dense("a", {4}, DType::u8, make_source_blob(here, 8, 4)));
  model.add(make_dense("b", {2}, DType::u8, make_source_blob(zeros_but(0), 0, 2)));
  model.add(make_dense("c", {1}, DType::u8, make_memory_blob(std::vector<std::byte>(1), "c")));
  EXPECT_THAT(list_part_ranges(model, *here), ElementsAre(FileRange{8, 12}));
}

}  // namespace
}  // namespace poise
