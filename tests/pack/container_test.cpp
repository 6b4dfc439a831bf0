#include "pack/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <poise/error.hpp>

#include "io/source_text.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/tar_file.hpp"
#include "support/zip_file.hpp"

namespace poise {
namespace {

using support::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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

// Of the files a, f/b and f/g/c, from the folder f on.
void expect_folder(const Container& container) {
  EXPECT_EQ(text(container, "b"), "bytes of b");
  EXPECT_EQ(text(container, "g/c"), "bytes of c");
  EXPECT_EQ(container.open("g/c")->name(), container.path("g/c"));
  EXPECT_TRUE(container.has("b") && container.has_file("g/c"));
  EXPECT_FALSE(container.has("a") || container.has("f/b"));
  EXPECT_THAT(container.names("g"), UnorderedElementsAre("c"));
  EXPECT_THAT(container.names("h"), UnorderedElementsAre());
  EXPECT_EQ(error_of([&] { container.open("a"); }).kind(), ErrorKind::not_found);
}

TEST(Container, Directories) {
  const support::TemporaryDirectory directory;
  support::put(directory / "a", "bytes of a");
  support::put(directory / "f/b", "bytes of b");
  support::put(directory / "f/g/c", "bytes of c");
  for (const IoMode io : {IoMode::map, IoMode::read}) {
    const auto files = open_container(*container_kind(nullptr), directory / "f", nullptr, io);
    expect_folder(*files);
    EXPECT_THAT(files->names(), UnorderedElementsAre("b", "g"));
    EXPECT_TRUE(files->has("g"));
    EXPECT_FALSE(files->has_file("g"));
    EXPECT_EQ(files->file_of("b"), files->path("b"));
  }
}

TEST(Container, Archives) {
  const std::string tar = support::tar_member({"a", "bytes of a"}) + support::tar_member({"f/", "", '5'}) +
                          support::tar_member({"f/b", "bytes of b"}) + support::tar_member({"f/g/c", "bytes of c"});
  const std::string zip =
      support::zip_file({{"a", "bytes of a"}, {"f/", ""}, {"f/b", "bytes of b"}, {"f/g/c", "bytes of c"}}).bytes();
  for (const std::string& bytes : {tar, zip}) {
    const SourcePtr source = support::source(bytes, "archive");
    const auto kind = container_kind(source);
    ASSERT_TRUE(kind);
    EXPECT_THAT(open_container(*kind, "archive", source)->names(), UnorderedElementsAre("a", "f/b", "f/g/c"));
    const auto files = open_container(*kind, "archive", source)->folder("f");
    expect_folder(*files);
    EXPECT_THAT(files->names(), UnorderedElementsAre("b", "g/c"));
    EXPECT_EQ(files->file_of("b"), "archive");
    EXPECT_TRUE(files->open("b")->mapped());
    std::vector<std::byte> two(2);
    EXPECT_EQ(error_of([&] { files->open("b")->read(9, two); }).kind(), ErrorKind::internal);
  }
}

// A tar archive of members and links, and a zip archive of the same.
std::vector<std::string> archives_of(const std::vector<std::pair<std::string, std::string>>& files,
                                     const std::vector<std::pair<std::string, std::string>>& links) {
  std::string tar;
  std::vector<support::ZipEntry> entries;
  for (const auto& [name, bytes] : files) {
    tar += support::tar_member({name, bytes});
    entries.push_back({name, bytes});
  }
  for (const auto& [name, target] : links) {
    tar += support::tar_member({.name = name, .type = '2', .link = target});
    entries.push_back({name, deflated(target), target, true});
  }
  auto zip = support::zip_file(entries);
  for (std::size_t i = files.size(); i < entries.size(); ++i) {
    zip.u32(std::to_string(i) + " entry versions", 20 << 16 | 3 << 8 | 30);
    zip.u32(std::to_string(i) + " entry attributes", 0120777U << 16U);
  }
  return {tar, zip.bytes()};
}

TEST(Container, LinksOfArchives) {
  for (const std::string& bytes : archives_of({{"blobs/b", "bytes of b"}}, {{"./s/f/a", "../../blobs/b"},
                                                                            {"s/f/outside", "../../../b"},
                                                                            {"s/nowhere", "x"},
                                                                            {"s/folder", "../blobs"}})) {
    const SourcePtr source = support::source(bytes, "archive");
    const auto files = open_container(*container_kind(source), "archive", source);
    EXPECT_THAT(files->names(), UnorderedElementsAre("blobs/b", "s/f/a", "s/f/outside", "s/nowhere"));
    const auto folder = files->folder("s");
    EXPECT_EQ(text(*folder, "f/a"), "bytes of b");
    EXPECT_TRUE(folder->has_file("f/a"));
    EXPECT_TRUE(folder->has("nowhere"));
    EXPECT_FALSE(folder->has_file("nowhere"));
    const Error error = error_of([&] { folder->open("f/outside"); });
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(error.path(), "archive: s/f/outside");
    EXPECT_THAT(error.message(), HasSubstr("a symbolic link to ../../../b, which is outside of the archive"));
    std::vector<std::string> warned;
    for (const Finding& finding : folder->warnings()) warned.push_back(finding.path);
    EXPECT_THAT(warned, ElementsAre("archive: s/f/outside", "archive: s/nowhere"));
    EXPECT_THAT(files->folder("blobs")->warnings(), IsEmpty());
  }
}

// The last of one name counts, whether it is a file or a link.
TEST(Container, LinksAndFilesOfOneName) {
  for (const std::string& bytes : archives_of({{"b", "bytes of b"}, {"m/a", "of a"}}, {{"m/./a", "../b"}})) {
    const SourcePtr source = support::source(bytes, "archive");
    const auto files = open_container(*container_kind(source), "archive", source);
    EXPECT_EQ(text(*files, "m/a"), "bytes of b");
    ASSERT_EQ(files->warnings().size(), 1U);
    EXPECT_THAT(files->warnings()[0].message, HasSubstr("m/a (also as m/./a): more than one member has this name"));
  }
  auto zip = support::zip_file({{"m/./a", "b"}, {"m/a", "of a"}});
  zip.u32("0 entry versions", 20 << 16 | 3 << 8 | 30).u32("0 entry attributes", 0120777U << 16U);
  const SourcePtr source = support::source(zip.bytes(), "archive");
  EXPECT_EQ(text(*open_container(ContainerKind::zip, "archive", source), "m/a"), "of a");
  EXPECT_EQ(open_container(ContainerKind::zip, "archive", source)->warnings().size(), 1U);
}

TEST(Container, LinksThatAreFoldersWithMembers) {
  for (const std::string& bytes : archives_of({{"real/b", "b"}, {"m/a", "bytes of a"}}, {{"m", "real"}})) {
    const SourcePtr source = support::source(bytes, "archive");
    const auto files = open_container(*container_kind(source), "archive", source);
    EXPECT_EQ(text(*files, "m/a"), "bytes of a");
    ASSERT_EQ(files->warnings().size(), 1U);
    EXPECT_THAT(files->warnings()[0].message, HasSubstr("m: a link, and a folder with members"));
  }
}

// An error only where one is read.
TEST(Container, LinksOfZipArchivesWithoutATarget) {
  auto zip = support::zip_file({{"a", "of a"}, {"long", std::string(4097, 'x')}, {"bad", "no deflate", "a", true}});
  for (const char* link : {"1", "2"}) {
    zip.u32(fmt::format("{} entry versions", link), 20 << 16 | 3 << 8 | 30);
    zip.u32(fmt::format("{} entry attributes", link), 0120777U << 16U);
  }
  const SourcePtr source = support::source(zip.bytes(), "archive");
  const auto files = open_container(ContainerKind::zip, "archive", source);
  EXPECT_EQ(text(*files, "a"), "of a");
  EXPECT_TRUE(files->has("long") && files->has("bad"));
  EXPECT_FALSE(files->has_file("long") || files->has_file("bad"));
  EXPECT_THAT(error_of([&] { files->open("long"); }).message(), HasSubstr("whose target has 4097 bytes, at most 4096"));
  EXPECT_THAT(error_of([&] { files->open("bad"); }).message(), HasSubstr("whose target cannot be read ("));
  EXPECT_EQ(files->warnings().size(), 2U);
}

TEST(Container, ManyLostLinksAreCounted) {
  std::vector<std::pair<std::string, std::string>> links;
  for (int i = 10; i < 25; ++i) links.emplace_back(std::to_string(i), "x");
  for (const std::string& bytes : archives_of({}, links)) {
    const SourcePtr source = support::source(bytes, "archive");
    const auto warnings = open_container(*container_kind(source), "archive", source)->warnings();
    ASSERT_EQ(warnings.size(), 11U);
    EXPECT_EQ(warnings[10].message, "5 more links lead nowhere and are left out");
  }
}

// Only attributes of Unix have a mode.
TEST(Container, MembersOfZipArchivesThatAreNoLinks) {
  auto zip = support::zip_file({{"a", "b"}, {"b", "bytes"}});
  zip.u32("0 entry attributes", 0120777U << 16U);
  const SourcePtr source = support::source(zip.bytes(), "archive");
  EXPECT_EQ(text(*open_container(ContainerKind::zip, "archive", source), "a"), "b");
  zip.u32("0 entry versions", 20 << 16 | 3 << 8 | 30);
  const SourcePtr on_unix = support::source(zip.bytes(), "archive");
  EXPECT_EQ(text(*open_container(ContainerKind::zip, "archive", on_unix), "a"), "bytes");
  zip.u32("0 entry attributes", 0100644U << 16U);
  const SourcePtr file = support::source(zip.bytes(), "archive");
  EXPECT_EQ(text(*open_container(ContainerKind::zip, "archive", file), "a"), "b");
}

TEST(Container, TwoSpellingsOfOneName) {
  for (const std::string& bytes : archives_of({{"a", "first"}, {"./a", "second"}}, {})) {
    const SourcePtr source = support::source(bytes, "archive");
    const auto files = open_container(*container_kind(source), "archive", source);
    EXPECT_THAT(files->names(), ElementsAre("a"));
    EXPECT_EQ(text(*files, "a"), "second");
    EXPECT_EQ(files->warnings().size(), 1U);
  }
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 50; ++i)
    many.emplace_back(std::string(static_cast<std::size_t>(i), '/').insert(0, ".") + "/a", "");
  for (const std::string& bytes : archives_of(many, {})) {
    const SourcePtr source = support::source(bytes, "archive");
    EXPECT_EQ(open_container(*container_kind(source), "archive", source)->warnings().size(), 1U);
  }
}

TEST(Container, TarArchivesFromBeforePosix) {
  const SourcePtr source = support::source(support::tar_member({.name = "a", .bytes = "x", .is_v7 = true}), "archive");
  ASSERT_EQ(container_kind(source), ContainerKind::tar);
  EXPECT_EQ(text(*open_container(ContainerKind::tar, "archive", source), "a"), "x");
}

// Small deflated members may decode to much each, and to little together.
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
  EXPECT_EQ(of(file.bytes())->checksums(), 2U);
  EXPECT_TRUE(of(file.bytes())->check().empty());
  file.raw("1 bytes", "OTHER");
  EXPECT_EQ(of(file.bytes())->check().size(), 1U);
}

}  // namespace
}  // namespace poise
