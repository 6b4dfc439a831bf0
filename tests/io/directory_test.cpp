#include "io/directory.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using support::put;

TEST(Directory, ListsItsEntriesInOrder) {
  const support::TemporaryDirectory scratch;
  put(scratch.path() / "b", "2");
  put(scratch.path() / "a", "1");
  put(scratch.path() / "c" / "inner", "3");
  fs::create_symlink("a", scratch.path() / "d");
  ASSERT_EQ(::mkfifo((scratch.path() / "e").c_str(), 0600), 0);
  std::string found;
  for (const DirectoryEntry& entry : list_directory(scratch.path()))
    found += entry.name + (entry.is_file ? " file, " : " other, ");
  EXPECT_EQ(found, "a file, b file, c other, d other, e other, ");
}

TEST(Directory, ReportsWhyItCannotList) {
  const support::TemporaryDirectory scratch;
  EXPECT_THROW(list_directory(scratch.path() / "none"), Error);
  put(scratch.path() / "file", "");
  EXPECT_THROW(list_directory(scratch.path() / "file"), Error);
}

TEST(Directory, ManyFilesGoWithTheirDirectory) {
  const support::TemporaryDirectory scratch;
  const fs::path directory = scratch.path() / "many";
  for (int i = 0; i < 3000; ++i) put(directory / std::to_string(i), "x");
  remove_directory(directory);
  EXPECT_FALSE(fs::exists(directory));
}

TEST(Directory, FoldersOfFilesGoWithIt) {
  const support::TemporaryDirectory scratch;
  const fs::path directory = scratch.path() / "gone";
  put(directory / "file", "1");
  put(directory / "inner" / "file", "2");
  remove_directory(directory);
  EXPECT_FALSE(fs::exists(directory));
}

TEST(Directory, StaysWithLinksAndDeeperFolders) {
  const support::TemporaryDirectory scratch;
  const fs::path directory = scratch.path() / "kept";
  put(directory / "file", "1");
  put(directory / "inner" / "deeper" / "file", "2");
  put(scratch.path() / "other", "3");
  fs::create_symlink(scratch.path() / "other", directory / "link");
  remove_directory(directory);
  EXPECT_THAT(support::names_in(directory), testing::ElementsAre("inner", "link"));
  EXPECT_TRUE(fs::exists(directory / "inner" / "deeper" / "file"));
  EXPECT_TRUE(fs::exists(scratch.path() / "other"));
}

TEST(Directory, ALinkToOneIsNotFollowed) {
  const support::TemporaryDirectory scratch;
  put(scratch.path() / "target" / "file", "1");
  fs::create_directory_symlink(scratch.path() / "target", scratch.path() / "link");
  remove_directory(scratch.path() / "link");
  EXPECT_TRUE(fs::exists(scratch.path() / "target" / "file"));
}

}  // namespace
}  // namespace poise
