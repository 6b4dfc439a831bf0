// A file appears whole, with the right mode, in the right place, or not at all.
#include "io/atomic_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/file_descriptor.hpp"
#include "pack/writer_digests.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class AtomicFileTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_ / name; }

  std::vector<std::string> names() const { return support::names_in(directory_.path()); }

  static void write(Sink& sink, std::string_view text) { sink.write(std::as_bytes(std::span(text))); }

  static ErrorKind refusal(const fs::path& target, bool overwrite) {
    return support::error_of([&] { AtomicFile(target, overwrite).commit(); }).kind();
  }

  static mode_t mode_of(const fs::path& file) {
    struct stat status {};
    ::lstat(file.c_str(), &status);
    return status.st_mode & 07777;
  }

 private:
  support::TemporaryDirectory directory_;
};

TEST_F(AtomicFileTest, AppearsOnCommit) {
  AtomicFile file(path("a"), false);
  write(file, "text");
  file.flush();
  EXPECT_FALSE(fs::exists(path("a")));
  file.commit();
  EXPECT_EQ(support::contents(path("a")), "text");
  EXPECT_THAT(names(), ElementsAre("a"));
}

// Returns the bytes that a file uses on the disk.
std::uint64_t bytes_on_disk(const fs::path& file) {
  struct stat status {};
  ::stat(file.c_str(), &status);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST_F(AtomicFileTest, PaddingIsAHole) {
  constexpr std::uint64_t kGiB = 1 << 30;
  AtomicFile file(path("a"), false);
  write(file, "begin");
  file.pad_to(kGiB);
  write(file, "middle");
  file.pad_to(16);
  write(file, "end");
  file.pad_to(2 * kGiB);
  EXPECT_EQ(file.position(), 2 * kGiB);
  EXPECT_EQ(file.padding(), 2 * kGiB - 14);
  file.commit();
  EXPECT_EQ(fs::file_size(path("a")), 2 * kGiB);
  EXPECT_LE(bytes_on_disk(path("a")), 64U << 10);
  std::ifstream again(path("a"), std::ios::binary);
  std::string text(6, '\0');
  again.seekg(0);
  again.read(text.data(), 6);
  EXPECT_EQ(text, std::string("begin\0", 6));
  again.seekg(static_cast<std::streamoff>(kGiB));
  text.resize(20);
  again.read(text.data(), 20);
  EXPECT_EQ(text, "middle" + std::string(10, '\0') + "end" + '\0');
  const auto source = Source::open(path("a"));
  EXPECT_EQ(find_written_range(*source, 0).begin, 0U);
  EXPECT_LE(find_written_range(*source, 0).end, 64U << 10);
  EXPECT_EQ(find_written_range(*source, 1 << 20).begin, kGiB);
  EXPECT_LE(find_written_range(*source, 1 << 20).end, kGiB + (64 << 10));
  EXPECT_EQ(find_written_range(*source, kGiB + 1).begin, kGiB + 1);
  EXPECT_EQ(find_written_range(*source, kGiB + (1 << 20)).begin, 2 * kGiB);
  EXPECT_EQ(find_written_range(*Source::from_memory(std::vector<std::byte>(9), "memory"), 3).begin, 3U);
  EXPECT_EQ(find_written_range(*Source::from_memory(std::vector<std::byte>(9), "memory"), 3).end, 9U);
}

// Digests read the written bytes back, even if the file ends in a hole.
TEST_F(AtomicFileTest, WhatIsWrittenCanBeReadBehindPadding) {
  AtomicFile file(path("a"), false);
  write(file, "x");
  file.pad_to(1 << 20);
  const auto written = file.read_back();
  ASSERT_EQ(written->size(), 1U << 20);
  std::array<std::byte, 2> last{std::byte{1}, std::byte{1}};
  written->read((1 << 20) - 2, last);
  EXPECT_EQ(last, (std::array<std::byte, 2>{}));
  write(file, "y");
  file.commit();
  EXPECT_EQ(support::contents(path("a")), "x" + std::string((1 << 20) - 1, '\0') + "y");
}

TEST_F(AtomicFileTest, ShortPaddingIsWritten) {
  AtomicFile file(path("a"), false);
  write(file, "x");
  file.pad_to(4096);
  write(file, "y");
  file.commit();
  EXPECT_EQ(support::contents(path("a")), "x" + std::string(4095, '\0') + "y");
}

// A hasher must get the zeros of holes, too.
TEST_F(AtomicFileTest, PaddingIsHashed) {
  AtomicFile file(path("a"), false);
  const auto hasher = make_xxh3();
  HashingSink hashing(file, *hasher);
  write(hashing, "x");
  hashing.pad_to(1 << 20);
  write(hashing, "y");
  file.commit();
  const auto whole = make_xxh3();
  const std::string content = support::contents(path("a"));
  EXPECT_EQ(content, "x" + std::string((1 << 20) - 1, '\0') + "y");
  whole->update(std::as_bytes(std::span(content)));
  EXPECT_EQ(hasher->finish(), whole->finish());
  EXPECT_LE(bytes_on_disk(path("a")), 64U << 10);
}

TEST_F(AtomicFileTest, LeavesNoFileWithoutCommit) {
  support::put(path("old"), "old");
  {
    AtomicFile first(path("new"), false);
    AtomicFile second(path("old"), true);
    write(first, "text");
    write(second, "text");
    second.flush();
  }
  EXPECT_THAT(names(), ElementsAre("old"));
  EXPECT_EQ(support::contents(path("old")), "old");
}

TEST_F(AtomicFileTest, ReplacesOnlyWithOverwrite) {
  support::put(path("a"), "old");
  EXPECT_EQ(refusal(path("a"), false), ErrorKind::bad_argument);
  EXPECT_EQ(support::contents(path("a")), "old");
  ::chmod(path("a").c_str(), 0640);
  AtomicFile file(path("a"), true);
  write(file, "new");
  file.commit();
  EXPECT_EQ(support::contents(path("a")), "new");
  EXPECT_EQ(mode_of(path("a")), 0640U);
  EXPECT_THAT(names(), ElementsAre("a"));
}

// Tests usually run as root. Other users cannot change the owner, so the file belongs to the user.
TEST_F(AtomicFileTest, AReplacedFileKeepsItsOwner) {
  support::put(path("a"), "old");
  const bool is_root = ::geteuid() == 0;
  const uid_t owner = is_root ? 4711 : ::geteuid();
  const gid_t group = is_root ? 4712 : ::getegid();
  ASSERT_EQ(::chown(path("a").c_str(), owner, group), 0);
  ASSERT_EQ(::chmod(path("a").c_str(), 04751), 0);
  AtomicFile file(path("a"), true);
  write(file, "new");
  file.commit();
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, owner);
  EXPECT_EQ(status.st_gid, group);
  EXPECT_EQ(mode_of(path("a")), 04751U);
}

TEST_F(AtomicFileTest, DoesNotAdviseToReplaceWhatItRefusesToReplace) {
  fs::create_directory(path("directory"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", path("link"));
  support::put(path("file"), "old");
  const auto remedies = [&](const fs::path& target) {
    return support::error_of([&] { require_replaceable(target, false); }).remedies().size();
  };
  EXPECT_EQ(remedies(path("directory")), 0U);
  EXPECT_EQ(remedies(path("pipe")), 0U);
  EXPECT_EQ(remedies(path("link")), 0U);
  EXPECT_EQ(remedies(path("file")), 1U);
}

TEST_F(AtomicFileTest, TheNextSaveRemovesWhatAKilledOneLeft) {
  const std::string long_name(250, 'n');  // too long for a hidden name of its own
  for (const std::string& name : {std::string("f"), long_name}) {
    for (const bool exists : {false, true}) {
      if (exists) support::put(path(name), "old");
      if (name == "f") support::put(path(".f.poise-new"), "left");
      AtomicFile file(path(name), true);
      write(file, "new");
      file.commit();
      EXPECT_EQ(support::contents(path(name)), "new");
      EXPECT_THAT(names(), ElementsAre(name));
      fs::remove(path(name));
    }
  }
}

TEST_F(AtomicFileTest, SavesToOneTargetAtOnceLeaveOneOfThem) {
  support::put(path("f"), "old");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        AtomicFile file(path("f"), true);
        write(file, std::string(10'000, static_cast<char>('a' + i)));
        file.commit();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(names(), ElementsAre("f"));
  const std::string text = support::contents(path("f"));
  EXPECT_EQ(text, std::string(10'000, text.front()));
}

TEST_F(AtomicFileTest, KeepsWhatHasAppearedMeanwhile) {
  AtomicFile file(path("a"), false);
  write(file, "mine");
  support::put(path("a"), "theirs");
  EXPECT_THROW(file.commit(), Error);
  EXPECT_EQ(support::contents(path("a")), "theirs");
}

TEST_F(AtomicFileTest, NewFilesHaveTheModeOfTheUmask) {
  const mode_t old = ::umask(027);
  AtomicFile file(path("a"), false);
  file.commit();
  ::umask(old);
  EXPECT_EQ(mode_of(path("a")), 0640U);
}

TEST_F(AtomicFileTest, LinksToDevicesStay) {
  EXPECT_THROW(AtomicFile("/proc/self/fd/0", true), Error);  // as /dev/stdin is, wherever it leads
  fs::create_symlink("/dev/null", path("a"));
  EXPECT_THAT([&] { AtomicFile(path("a"), true); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("not a regular file")));
  EXPECT_TRUE(fs::is_symlink(path("a")));
}

TEST_F(AtomicFileTest, LinksAreReplacedAndNeverFollowed) {
  support::put(path("victim"), "precious");
  fs::create_symlink(path("victim"), path("a"));
  EXPECT_EQ(refusal(path("a"), false), ErrorKind::bad_argument);
  AtomicFile file(path("a"), true);
  write(file, "new");
  file.commit();
  EXPECT_EQ(support::contents(path("victim")), "precious");
  EXPECT_FALSE(fs::is_symlink(path("a")));
  EXPECT_EQ(support::contents(path("a")), "new");
}

TEST_F(AtomicFileTest, RefusesSpecialFiles) {
  fs::create_directory(path("directory"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(path("directory"), true), ErrorKind::bad_argument);
  EXPECT_EQ(refusal(path("pipe"), true), ErrorKind::bad_argument);
  EXPECT_EQ(refusal(path("absent/file"), true), ErrorKind::not_found);
  EXPECT_EQ(refusal(path(""), true), ErrorKind::bad_argument);
}

TEST_F(AtomicFileTest, UndoesACommit) {
  support::put(path("old"), "old");
  AtomicFile first(path("new"), true);
  AtomicFile second(path("old"), true);
  first.commit_undoably();
  second.commit_undoably();
  EXPECT_THAT(support::contents(path("old")), IsEmpty());
  first.undo_commit();
  second.undo_commit();
  EXPECT_THAT(names(), ElementsAre("old"));
  EXPECT_EQ(support::contents(path("old")), "old");
}

TEST_F(AtomicFileTest, FilesOfOneSaveReplaceAllOrNone) {
  for (const bool fails : {true, false}) {
    support::put(path("1"), "old");
    support::put(path("2"), "old");
    {
      FileOutput output(path("2"), true);
      write(output.open_sibling("1"), "new");
      write(output.open_sibling("3"), "new");
      write(output.main(), "new");
      if (fails) {
        fs::remove(path("2"));
        fs::create_directory(path("2"));
        EXPECT_THROW(output.commit(), Error);
      } else {
        output.commit();
      }
    }
    if (fails) {
      EXPECT_THAT(names(), ElementsAre("1", "2"));
      EXPECT_EQ(support::contents(path("1")), "old");
      EXPECT_TRUE(fs::remove(path("2")));
    } else {
      EXPECT_THAT(names(), ElementsAre("1", "2", "3"));
      EXPECT_EQ(support::contents(path("1")) + support::contents(path("2")), "newnew");
    }
  }
}

TEST_F(AtomicFileTest, CopiesRangesOfFilesInOrderWithWrites) {
  std::string large(3 << 20, 'x');
  large[1 << 20] = 'y';
  support::put(path("source"), large);
  AtomicFile file(path("a"), false);
  write(file, "begin");
  file.copy(*Source::open(path("source")), 1 << 20, 2 << 20);
  file.copy(*Source::open(path("source"), IoMode::read), 0, 3);
  write(file, "end");
  EXPECT_EQ(file.position(), 5U + (2U << 20) + 3U + 3U);
  file.commit();
  EXPECT_EQ(support::contents(path("a")), "begin" + large.substr(1 << 20) + "xxxend");
}

}  // namespace
}  // namespace poise
