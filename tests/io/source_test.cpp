#include <poise/source.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using testing::HasSubstr;

class SourceTest : public testing::Test {
 protected:
  // Writes a file of bytes 0, 1, ..., 250, 0, ...
  std::filesystem::path file(std::size_t size) const {
    const std::filesystem::path path = directory_ / "file";
    std::ofstream stream(path, std::ios::binary);
    for (std::size_t i = 0; i < size; ++i) stream.put(static_cast<char>(i % 251));
    return path;
  }

  support::TemporaryDirectory directory_;
};

std::vector<std::byte> read(const Source& source, std::uint64_t offset, std::size_t length) {
  std::vector<std::byte> bytes(length);
  source.read(offset, bytes);
  return bytes;
}

std::vector<std::byte> counted(std::size_t first, std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>((first + i) % 251);
  return bytes;
}

ErrorKind kind_of(const std::function<void()>& act, std::string_view message) {
  const Error error = support::error_of(act);
  EXPECT_THAT(error.what(), HasSubstr(std::string(message)));
  return error.kind();
}

TEST_F(SourceTest, BothModesReadTheSameBytes) {
  constexpr std::size_t kSize = 200'000;  // small pieces are copied from the mapping, large ones read
  const std::filesystem::path path = file(kSize);
  for (const IoMode mode : {IoMode::map, IoMode::read}) {
    const SourcePtr source = Source::open(path, mode);
    EXPECT_EQ(source->name(), path.string());
    EXPECT_EQ(source->size(), kSize);
    EXPECT_EQ(source->mapped(), mode == IoMode::map);
    EXPECT_EQ(source->bytes().size(), mode == IoMode::map ? kSize : 0);
    EXPECT_GE(source->descriptor(), 0);
    EXPECT_EQ(read(*source, 0, kSize), counted(0, kSize));
    EXPECT_EQ(read(*source, 4095, 3), counted(4095, 3));
    EXPECT_EQ(read(*source, 1, 100'000), counted(1, 100'000));
    EXPECT_TRUE(read(*source, kSize, 0).empty());
  }
}

TEST_F(SourceTest, NothingOutsideIsRead) {
  const std::filesystem::path path = file(10);
  const SourcePtr memory = Source::from_memory(counted(0, 10), "memory");
  for (const SourcePtr& source : {Source::open(path, IoMode::map), Source::open(path, IoMode::read), memory}) {
    EXPECT_EQ(kind_of([&] { read(*source, 8, 3); }, "read of 3 bytes outside a source of 10"), ErrorKind::internal);
    EXPECT_EQ(kind_of([&] { read(*source, 11, 0); }, "outside a source of 10"), ErrorKind::internal);
    EXPECT_EQ(kind_of([&] { read(*source, UINT64_MAX, 2); }, "outside a source of 10"), ErrorKind::internal);
  }
}

TEST_F(SourceTest, HintsChangeNothing) {
  const std::filesystem::path path = file(20'000);
  for (const IoMode mode : {IoMode::map, IoMode::read}) {
    const SourcePtr source = Source::open(path, mode);
    source->will_need(5000, 100'000);  // beyond the end
    source->done_with(1, 19'999);
    source->done_with(UINT64_MAX, UINT64_MAX);
    EXPECT_EQ(read(*source, 0, 20'000), counted(0, 20'000));
  }
}

TEST_F(SourceTest, AnEmptyFileAndEmptyMemory) {
  for (const IoMode mode : {IoMode::map, IoMode::read}) {
    const SourcePtr source = Source::open(file(0), mode);
    EXPECT_EQ(source->size(), 0U);
    EXPECT_TRUE(source->bytes().empty());
    EXPECT_TRUE(read(*source, 0, 0).empty());
  }
  EXPECT_EQ(Source::from_memory({}, "memory")->size(), 0U);
}

TEST_F(SourceTest, AFileThatShrinksIsAnErrorInModeRead) {
  const std::filesystem::path path = file(10'000);
  const SourcePtr source = Source::open(path, IoMode::read);
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(kind_of([&] { read(*source, 0, 10'000); }, path.string()), ErrorKind::io);
  EXPECT_EQ(read(*source, 50, 50), counted(50, 50));
}

// Files of sysfs are regular, have a size, and cannot be mapped.
TEST_F(SourceTest, ReadsAFileThatCannotBeMapped) {
  const std::filesystem::path path = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const SourcePtr source = Source::open(path);
  EXPECT_FALSE(source->mapped());
  EXPECT_TRUE(source->bytes().empty());
  std::array<std::byte, 3> bytes{};
  source->read(0, bytes);
  std::array<char, 3> expected{};
  std::ifstream(path).read(expected.data(), 3);
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), 3), 0);
}

TEST_F(SourceTest, OnlyRegularFilesOpen) {
  const auto open = [](const std::filesystem::path& path) { return [path] { (void)Source::open(path); }; };
  EXPECT_EQ(kind_of(open(directory_ / "absent"), "cannot open"), ErrorKind::not_found);
  EXPECT_EQ(kind_of(open(directory_.path()), "this is a directory"), ErrorKind::bad_argument);
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind_of(open(directory_ / "pipe"), "this is a pipe"), ErrorKind::bad_argument);
  EXPECT_EQ(kind_of(open("/dev/null"), "this is a device"), ErrorKind::bad_argument);
  std::filesystem::create_symlink(file(3), directory_ / "link");
  EXPECT_EQ(Source::open(directory_ / "link")->size(), 3U);
}

}  // namespace
}  // namespace poise
