// Breaks every rule of zTensor 0.1 and 1.0 once (docs/formats/ztensor.md).
#include <gtest/gtest.h>

#include <array>

#include "support/bytes.hpp"
#include "support/cbor_notation.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

using namespace support;
using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr auto kInvalid = ErrorKind::invalid_file;

Entries entry() {
  return {{text("name"), text("t")},        {text("offset"), number(64)},        {text("size"), number(16)},
          {text("dtype"), text("float32")}, {text("shape"), array({number(4)})}, {text("encoding"), text("raw")}};
}

// Returns a file: magic, a blob at 64, the index with its entries, its size.
ByteFile file_of(const std::vector<std::string>& entries) {
  ByteFile file;
  file.raw("magic", "ZTEN0001")
      .pad("magic padding", 64)
      .raw("blob", std::string(16, '\0'))
      .raw("index", long_head(4, entries.size(), 0));
  for (std::size_t i = 0; i < entries.size(); ++i) file.raw("entry " + std::to_string(i), entries[i]);
  return file.raw("behind", "").size_of("size", "index", "behind");
}
ByteFile whole() { return file_of({map(entry())}); }

// Returns a file with one field of the entry replaced; "" leaves the field out.
ByteFile with(std::string_view key, const std::string& value) {
  Entries entries = entry();
  std::erase_if(entries, [&](const auto& item) { return item.first == text(key); });
  if (!value.empty()) entries.emplace_back(text(key), value);
  return file_of({map(entries)});
}

TEST(HostileZtensor0, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.zt", whole()); }

TEST(HostileZtensor0, Container) {
  expect_refused("hostile.zt",
                 std::array{
                     Case{"the index has a size", [] { return whole().cut("magic padding", 4); }, kInvalid, kEndOfFile,
                          "zt 0.1: index size: the file is cut off"},
                     Case{"the index is at most 1 GiB", [] { return whole().u64("size", (1ULL << 30) + 1); }, kInvalid,
                          "size", "index size: 1073741825 bytes"},
                     Case{"the index lies in the file", [] { return whole().u64("size", 1 << 20); }, kInvalid, "size",
                          "index size: 1048576 bytes, but only"},
                     Case{"the index is not empty", [] { return whole().u64("size", 0); }, kInvalid, "size",
                          "an item needs more than the 0 bytes left"},
                     Case{"the index is an array", [] { return whole().raw("index", hex("a0")).raw("entry 0", ""); },
                          kInvalid, "index", "expected an array, found a map"},
                     Case{"it has its entries", [] { return whole().raw("index", hex("82")); }, kInvalid, "behind",
                          "an item needs more than the 0 bytes left"},
                     Case{"nothing is behind it", [] { return whole().raw("behind", "x"); }, kInvalid, "behind",
                          "1 bytes after the end"},
                     Case{"an entry is a map", [] { return file_of({array({})}); }, kInvalid, "entry 0",
                          "item 0: expected a map, found an array"},
                     Case{"a name stands once",
                          [] {
                            return file_of({map(entry()), map(entry())});
                          },
                          kInvalid, "entry 1", "the tensor name \"t\" appears twice"},
                 });
}

TEST(HostileZtensor0, Entries) {
  expect_refused(
      "hostile.zt",
      std::array{
          Case{"name is there", [] { return with("name", ""); }, kInvalid, "entry 0", "\"name\" is missing"},
          Case{"offset is there", [] { return with("offset", ""); }, kInvalid, "entry 0", "\"offset\" is missing"},
          Case{"size is there", [] { return with("size", ""); }, kInvalid, "entry 0", "\"size\" is missing"},
          Case{"dtype is there", [] { return with("dtype", ""); }, kInvalid, "entry 0", "\"dtype\" is missing"},
          Case{"shape is there", [] { return with("shape", ""); }, kInvalid, "entry 0", "\"shape\" is missing"},
          Case{"encoding is there", [] { return with("encoding", ""); }, kInvalid, "entry 0",
               "\"encoding\" is missing"},
          Case{"name is text", [] { return with("name", number(1)); }, kInvalid, kAnywhere, "name: expected text"},
          Case{"offset is a number", [] { return with("offset", text("64")); }, kInvalid, kAnywhere,
               "offset: expected an unsigned integer"},
          Case{"a dimension is a number", [] { return with("shape", array({negative(3)})); }, kInvalid, kAnywhere,
               "shape: item 0: expected an unsigned integer"},
          Case{"the order of bytes is one of two", [] { return with("data_endianness", text("middle")); }, kInvalid,
               kAnywhere, "expected little or big, found \"middle\""},
          Case{"offset is a multiple of 64", [] { return with("offset", number(72)); }, kInvalid, "entry 0",
               "t: data: offset: 72 is not a multiple of 64"},
          Case{"offset is after the magic", [] { return with("offset", number(0)); }, kInvalid, "entry 0",
               "t: data: offset: 0 is before"},
          Case{"the blob ends before the index", [] { return with("size", number(17)); }, kInvalid, "entry 0",
               "t: data: 17 bytes at 64 reach beyond the data"},
          Case{"the sum does not overflow", [] { return with("offset", number(UINT64_MAX - 63)); }, kInvalid, "entry 0",
               "reach beyond the data"},
          Case{"size is that of the shape", [] { return with("size", number(12)); }, kInvalid, "entry 0",
               "t: shape [4] of float32 needs 16 bytes, data holds 12"},
          Case{"the shape fits 64 bits",
               [] {
                 return with("shape", array({number(UINT64_MAX), number(2)}));
               },
               kInvalid, "entry 0", "overflows"},
      });
}

// 1.0 calls its objects tensors, gives each one dtype, and ends without a magic.
ByteFile version_1_0(const Entries& tensor, const Entries& more = {}) {
  Entries root = {{text("version"), text("1.0")}, {text("tensors"), map({{text("t"), map(tensor)}})}};
  root.insert(root.end(), more.begin(), more.end());
  ByteFile file;
  file.raw("magic", "ZTEN1000").pad("magic padding", 64).raw("blob", std::string(16, '\0')).raw("manifest", map(root));
  return file.size_of("size", "manifest", "manifest");
}
Entries tensor_1_0(const Entries& component, const Entries& more = {{text("dtype"), text("float32")}}) {
  Entries entries = {{text("shape"), array({number(4)})},
                     {text("format"), text("dense")},
                     {text("components"), map({{text("data"), map(component)}})}};
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}
Entries place(std::uint64_t offset, std::uint64_t size) {
  return {{text("offset"), number(offset)}, {text("size"), number(size)}};
}

TEST(HostileZtensor0, Version1Point0) {
  expect_sound("hostile.zt", version_1_0(tensor_1_0(place(64, 16))));
  expect_refused("hostile.zt",
                 std::array{
                     Case{"a tensor has a dtype", [] { return version_1_0(tensor_1_0(place(64, 16), {})); }, kInvalid,
                          kAnywhere, "t: \"dtype\" is missing"},
                     Case{"a component has a size",
                          [] {
                            return version_1_0(tensor_1_0({{text("offset"), number(64)}}));
                          },
                          kInvalid, kAnywhere, "\"length\" is missing"},
                     Case{"and only one",
                          [] {
                            return version_1_0(tensor_1_0({{text("length"), number(16)}, {text("size"), number(16)}}));
                          },
                          kInvalid, kAnywhere, "expected \"length\" or \"size\", found both"},
                     Case{"it lies in the file", [] { return version_1_0(tensor_1_0(place(128, 16))); }, kInvalid,
                          kAnywhere, "reach beyond the data"},
                     Case{"it has the size of the shape", [] { return version_1_0(tensor_1_0(place(64, 8))); },
                          kInvalid, kAnywhere, "shape [4] of float32 needs 16 bytes, data holds 8"},
                     Case{"the size of the manifest is right",
                          [] { return version_1_0(tensor_1_0(place(64, 16))).u64("size", 3); }, kInvalid, kEndOfFile,
                          "footer magic"},
                     Case{"only 1.0 ends without a magic",
                          [] {
                            ByteFile file;
                            file.raw("magic", "ZTEN1000")
                                .raw("manifest", map({{text("version"), text("1.1.0")}, {text("objects"), map({})}}));
                            return file.size_of("size", "manifest", "manifest");
                          },
                          kInvalid, kEndOfFile, "footer magic"},
                 });
}

TEST(HostileZtensor0, CutsAndFlippedBits) {
  constexpr std::array<std::string_view, 1> kData = {"blob"};
  constexpr std::array<std::string_view, 1> kPadding = {"magic padding"};  // verify() looks at it
  expect_cuts_refused("hostile.zt", whole());
  expect_flips_show("hostile.zt", whole(), kData, kPadding);
  const ByteFile older = version_1_0(tensor_1_0(place(64, 16)));
  expect_cuts_refused("hostile.zt", older);
  expect_flips_show("hostile.zt", older, kData,
                    std::array<std::string_view, 2>{"magic padding", "manifest"});  // of the version only "1." counts
}

}  // namespace
}  // namespace poise::hostile
