// Tests zip archives beyond tests/hostile/npz_test.cpp.
#include "pack/zip.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "pack/zip_writer.hpp"
#include "support/bytes.hpp"
#include "support/memory_output.hpp"
#include "support/zip_file.hpp"

namespace poise {
namespace {

using support::le;

std::string text_of(const ZipArchive& archive, std::string_view name) {
  return support::to_string(read_all(*archive.make_blob(*archive.find(name))));
}

// Every number that may have 64 bits has them (APPNOTE.TXT 4.5.3 and 4.3.14).
TEST(Zip, NumbersOf64BitsAreRead) {
  auto file = support::zip_file({{"a", "some bytes"}});
  const std::uint64_t header = file.offset("0 signature");
  file.u32("0 entry size", 0xffffffff).u32("0 entry stored bytes", 0xffffffff).u32("0 entry offset", 0xffffffff);
  file.raw("0 entry extra", le(1, 2) + le(24, 2) + le(10, 8) + le(10, 8) + le(header, 8))
      .u16("0 entry extra length", 28);
  const std::uint64_t begin = file.offset("0 entry signature");
  const std::uint64_t end = file.offset("end signature");
  const std::string bytes = file.bytes();
  const std::string record =
      "PK\6\6" + le(44, 8) + le(45, 2) + le(45, 2) + le(0, 8) + le(1, 8) + le(1, 8) + le(end - begin, 8) + le(begin, 8);
  const std::string locator = "PK\6\7" + le(0, 4) + le(end, 8) + le(1, 4);
  const std::string last =
      "PK\5\6" + le(0, 4) + le(0xffff, 2) + le(0xffff, 2) + le(0xffffffff, 4) + le(0xffffffff, 4) + le(0, 2);
  const ZipArchive archive(support::source(bytes.substr(0, end) + record + locator + last, "a.zip"));
  EXPECT_EQ(text_of(archive, "a"), "some bytes");
}

TEST(Zip, AnArchiveMayHaveAComment) {
  auto file = support::zip_file({{"a", "some bytes"}});
  file.u16("end comment length", 7).raw("comment", "PK\5\5 ok");
  EXPECT_EQ(text_of(ZipArchive(support::source(file.bytes(), "a.zip")), "a"), "some bytes");
}

TEST(Zip, WhatIsWrittenIsRead) {
  MemorySink sink;
  ZipWriter writer(sink, 64);
  const std::string bytes = "some bytes";
  writer.add_member("dir/a", std::as_bytes(std::span(bytes)));
  writer.add_member("empty", {});
  writer.finish();
  const ZipArchive archive(Source::from_memory(sink.take(), "a.zip"));
  ASSERT_EQ(archive.members().size(), 2U);
  EXPECT_EQ(text_of(archive, "dir/a"), bytes);
  EXPECT_EQ(archive.find("dir/a")->crc32, support::crc32_of(bytes));
  EXPECT_EQ(archive.find("dir/a")->begin % 64, 0U);
  EXPECT_TRUE(archive.check_crc32().empty());
}

TEST(Zip, AnArchiveWithoutMembersIsOne) {
  EXPECT_TRUE(ZipArchive(support::source(support::zip_file({}).bytes(), "a.zip")).members().empty());
}

// The stream is Python's zlib.compressobj(9, zlib.DEFLATED, -15) of b"abc" * 100.
TEST(Deflate, AnyPartIsRead) {
  const std::string deflated("\x4b\x4c\x4a\x4e\x1c\x45\xc4\x21\x00", 9);
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "abc";
  const SourcePtr source = support::source(deflated, "a");
  const BlobPtr blob = make_deflated_blob({source, 0, deflated.size()}, 300, support::crc32_of(expected), 30);
  EXPECT_EQ(support::to_string(read_all(*blob)), expected.substr(30));
  std::vector<std::byte> bytes(10);
  for (const std::uint64_t at : {200U, 100U, 110U, 260U}) {
    blob->read(at, bytes);
    EXPECT_EQ(support::to_string(bytes), expected.substr(30 + at, 10));
  }
  EXPECT_THROW(read_all(*make_deflated_blob({source, 0, deflated.size()}, 300, 1)), Error);
  EXPECT_THROW(read_all(*make_deflated_blob({source, 0, deflated.size()}, 299, 0)), Error);
  EXPECT_THROW(read_all(*make_deflated_blob({source, 0, deflated.size()}, 301, 0)), Error);
}

TEST(Deflate, NothingDecodesToMoreThan1032TimesItsBytes) {
  EXPECT_EQ(compute_inflated_limit(10), 10320U);
  EXPECT_EQ(compute_inflated_limit(UINT64_MAX), UINT64_MAX);
}

}  // namespace
}  // namespace poise
