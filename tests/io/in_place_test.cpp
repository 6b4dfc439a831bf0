#include "io/in_place.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>

#include "support/byte_file.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

class InPlaceTest : public ::testing::Test {
 protected:
  InPlaceTest() { std::ofstream(path(), std::ios::binary) << "0123456789"; }

  fs::path path() const { return directory_ / "file"; }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put_undo(const std::string& content) const { support::put(path().parent_path() / ".file.poise-undo", content); }
  bool is_alone() const {
    return std::distance(fs::directory_iterator(path().parent_path()), fs::directory_iterator()) == 1;
  }
  static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

 private:
  support::TemporaryDirectory directory_;
};

TEST_F(InPlaceTest, ReplacesTheBytesAndRemovesTheUndoFile) {
  replace_in_place(path(), 3, bytes("abc"));
  EXPECT_EQ(content(), "012abc6789");
  EXPECT_TRUE(is_alone());
  EXPECT_FALSE(is_interrupted(path()));
}

TEST_F(InPlaceTest, AFileThatCannotBeWrittenKeepsItsBytes) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(replace_in_place(path(), 3, bytes("abc")), Error);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content(), "0123456789");
  EXPECT_TRUE(is_alone());
}

TEST_F(InPlaceTest, WithoutAnUndoFileNoBytesAreRestored) {
  roll_back(path());
  EXPECT_EQ(content(), "0123456789");
  EXPECT_FALSE(is_interrupted(path()));
  EXPECT_FALSE(is_interrupted(path().parent_path() / std::string(250, 'n')));
}

// Returns an undo file, as the comment at the top of in_place.cpp describes it.
std::string undo(std::uint64_t offset, std::string_view old_bytes, std::string_view new_bytes) {
  return std::string("poise undo 1\n\0\0\0", 16) + support::le(offset, 8) + support::le(old_bytes.size(), 8) +
         std::string(old_bytes) + std::string(new_bytes);
}

TEST_F(InPlaceTest, RestoresTheBytesAfterAnInterruption) {
  put_undo(undo(3, "34567", "abcde"));
  support::put(path(), "012ab56789");
  EXPECT_TRUE(is_interrupted(path()));
  roll_back(path());
  EXPECT_EQ(content(), "0123456789");
  EXPECT_TRUE(is_alone());
}

TEST_F(InPlaceTest, RestoresMoreThanAChunk) {
  const std::string old_bytes = std::string(3 << 20, 'o') + "123";
  const std::string new_bytes = std::string(3 << 20, 'n') + "456";
  put_undo(undo(1, old_bytes, new_bytes));
  support::put(path(), "<" + new_bytes.substr(0, 1234567) + old_bytes.substr(1234567) + ">");
  EXPECT_TRUE(is_interrupted(path()));
  roll_back(path());
  EXPECT_EQ(content(), "<" + old_bytes + ">");
}

TEST_F(InPlaceTest, AnUndoFileOfOtherBytesChangesNothing) {
  const std::vector<std::string> others = {
      undo(3, "34567", "abcde"),  // nothing was replaced
      undo(3, "vwxyz", "34567"),  // all was
      undo(3, "x45y7", "abcde"),  // neither the old bytes nor the new ones
      undo(3, "34567", "abcde").substr(1),
      undo(8, "89?", "abc"),  // beyond the end
      undo(UINT64_MAX, "89", "ab"),
      undo(3, "34567", "abcde") + "f",
      undo(3, "34567", "abcde").substr(0, 31),
      std::string("poise undo 1\n\0\0\0", 16) + std::string(8, '\0') + std::string(8, '\xff') + "ab",
      "",
  };
  for (const std::string& other : others) {
    put_undo(other);
    EXPECT_FALSE(is_interrupted(path()));
    roll_back(path());
    EXPECT_EQ(content(), "0123456789");
    EXPECT_TRUE(is_alone());
  }
}

}  // namespace
}  // namespace poise
