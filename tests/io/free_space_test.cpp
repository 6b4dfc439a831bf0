#include "io/file_descriptor.hpp"

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(FreeSpace, IsThatOfTheFileSystem) {
  const auto standard = std::filesystem::space(std::filesystem::temp_directory_path());
  const auto room = measure_free_space(std::filesystem::temp_directory_path() / "file");
  if (!room) GTEST_SKIP() << "not a file system that takes what is written";
  EXPECT_GE(room->bytes + (std::uint64_t{1} << 30), standard.available);  // others write meanwhile
  EXPECT_LE(room->bytes, standard.capacity);
}

TEST(FreeSpace, IsNotKnownOfOtherFileSystems) {
  EXPECT_FALSE(measure_free_space("/proc/file"));
  EXPECT_FALSE(measure_free_space("/no/such/directory/file"));
}

// A plain name means a file in the working directory.
TEST(FreeSpace, AcceptsAPlainName) {
  EXPECT_EQ(measure_free_space("file").has_value(), measure_free_space("./file").has_value());
}

}  // namespace
}  // namespace poise
