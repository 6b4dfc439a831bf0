#include "pack/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <poise/error.hpp>

#include "io/source_range.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/zip_file.hpp"

namespace poise {
namespace {

using support::error_of;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::string deflated(std::string bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string text(const Container& container, std::string_view name) {
  const SourcePtr source = container.open(name);
  return read_text(*source, source->size());
}

// Checks the folder f of a container with the files a, f/b and f/g/c.
void expect_folder(const Container& container) {
  EXPECT_EQ(text(container, "b"), "bytes of b");
  EXPECT_EQ(text(container, "g/c"), "bytes of c");
  EXPECT_EQ(container.open("g/c")->name(), container.path("g/c"));
  EXPECT_TRUE(container.has("b") && container.has_file("g/c"));
  EXPECT_FALSE(container.has("a") || container.has("f/b"));
  EXPECT_THAT(container.list_names("g"), UnorderedElementsAre("c"));
  EXPECT_THAT(container.list_names("h"), UnorderedElementsAre());
  EXPECT_EQ(error_of([&] { container.open("a"); }).kind(), ErrorKind::not_found);
}

TEST(Container, Directories) {
  const support::TemporaryDirectory directory;
  support::put(directory / "a", "bytes of a");
  support::put(directory / "f/b", "bytes of b");
  support::put(directory / "f/g/c", "bytes of c");
  for (const IoMode io : {IoMode::map, IoMode::read}) {
    const auto files = open_container(*find_container_kind(nullptr), directory / "f", nullptr, io);
    expect_folder(*files);
    EXPECT_THAT(files->list_names(), UnorderedElementsAre("b", "g"));
    EXPECT_TRUE(files->has("g"));
    EXPECT_FALSE(files->has_file("g"));
    EXPECT_EQ(files->locate_file("b"), files->path("b"));
  }
}

TEST(Container, Archives) {
  const SourcePtr source = support::source(
      support::zip_file({{"a", "bytes of a"}, {"f/", ""}, {"./f//b", "bytes of b"}, {"f/g/c", "bytes of c"}}).bytes(),
      "archive");
  ASSERT_EQ(find_container_kind(source), ContainerKind::zip);
  EXPECT_THAT(open_container(ContainerKind::zip, "archive", source)->list_names(),
              UnorderedElementsAre("a", "f/b", "f/g/c"));
  const auto files = open_container(ContainerKind::zip, "archive", source)->open_folder("f");
  expect_folder(*files);
  EXPECT_THAT(files->list_names(), UnorderedElementsAre("b", "g/c"));
  EXPECT_EQ(files->locate_file("b"), "archive");
  EXPECT_TRUE(files->open("b")->mapped());
  std::vector<std::byte> two(2);
  EXPECT_EQ(error_of([&] { files->open("b")->read(9, two); }).kind(), ErrorKind::internal);
}

// Only attributes of Unix have a mode. Python unpacks a link as a file, `unzip` as a link.
TEST(Container, LinksInArchivesAreRefused) {
  auto zip = support::zip_file({{"a", "b"}, {"b", "bytes"}});
  const auto open = [&] { return open_container(ContainerKind::zip, "a", support::source(zip.bytes(), "archive")); };
  zip.u32("0 entry attributes", 0120777U << 16U);
  EXPECT_EQ(text(*open(), "a"), "b");
  for (const std::uint32_t system : {3U, 19U}) {  // Unix, macOS
    zip.u32("0 entry versions", 20U << 16 | system << 8 | 30U);
    const Error error = error_of(open);
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("the member a is a symbolic link"));
  }
  zip.u32("0 entry attributes", 0100644U << 16U);
  EXPECT_EQ(text(*open(), "a"), "b");
}

// Each deflated member may decode to many bytes, but all together have a limit.
TEST(Container, AllDeflatedMembersTogetherAreJustified) {
  const std::string zeros(10 << 20, '\0');
  const std::string stored = deflated(zeros);
  const std::string zip = support::zip_file({{"a", stored, zeros, true}, {"b", stored, zeros, true}}).bytes();
  const auto container = open_container(ContainerKind::zip, "a.zip", support::source(zip, "a.zip"));
  EXPECT_EQ(container->open("a")->size(), 10U << 20U);
  EXPECT_EQ(error_of([&] { container->open("b"); }).kind(), ErrorKind::unsupported);
}

TEST(Container, ChecksumsOfZipArchives) {
  auto file = support::zip_file({{"a", "bytes"}, {"b", "other"}});
  const auto of = [](const std::string& bytes) {
    const SourcePtr source = support::source(bytes, "archive");
    return open_container(ContainerKind::zip, "archive", source);
  };
  EXPECT_EQ(of(file.bytes())->count_checksums(), 2U);
  EXPECT_TRUE(of(file.bytes())->check_checksums().empty());
  file.raw("1 bytes", "OTHER");
  EXPECT_EQ(of(file.bytes())->check_checksums().size(), 1U);
}

}  // namespace
}  // namespace poise
