// Breaks every rule of Flax's files once (docs/formats/flax.md).
#include <gtest/gtest.h>

#include <array>

#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

std::string text(const std::string& value) { return static_cast<char>(0xa0 | value.size()) + value; }
std::string bytes(const std::string& value) { return "\xc4" + std::string(1, static_cast<char>(value.size())) + value; }
std::string map(const std::string& pairs, std::size_t count) { return static_cast<char>(0x80 | count) + pairs; }
std::string extension(const std::string& content, char type = 1) {
  return "\xc7" + std::string(1, static_cast<char>(content.size())) + type + content;
}

// Returns a file {"w": int16 [1, 2, 3]}, with a field for each item of the array.
ByteFile whole() {
  ByteFile file;
  file.raw("map", "\x81").raw("key", text("w")).raw("head", "\xc7\x11\1").raw("parts", "\x93");
  file.raw("shape", "\x91\x03").raw("type", text("int16")).raw("elements", "\xc4\x06").raw("data", "abcdef");
  return file;
}
ByteFile with(const std::string& content, char type = 1) {
  ByteFile file;
  return file.raw("map", "\x81").raw("key", text("w")).raw("array", extension(content, type));
}
ByteFile value(const std::string& item) {
  ByteFile file;
  return file.raw("map", "\x82")
      .raw("key", text("w"))
      .raw("array", extension("\x93\x90" + text("int8") + bytes("x")))
      .raw("second", text("v"))
      .raw("value", item);
}
std::string chunk(const std::string& elements, const std::string& type = "int8") {
  return extension("\x93\x91" + std::string(1, static_cast<char>(elements.size())) + text(type) + bytes(elements));
}
ByteFile chunked(const std::string& shape, const std::string& chunks) {
  ByteFile file;
  file.raw("map", "\x81").raw("key", text("w")).raw("inner", "\x83").raw("mark", text("__msgpack_chunked_array__"));
  file.raw("true", "\xc3").raw("shape key", text("shape")).raw("shape", shape);
  return file.raw("chunks key", text("chunks")).raw("chunks", chunks);
}
const std::string kShape = map(text("0") + "\x03", 1);
const std::string kChunks = map(text("0") + chunk("ab") + text("1") + chunk("c"), 2);

const HostileTable kTable("flax", [] { return whole().bytes(); });

TEST(HostileFlax, TheFilesAreSoundBeforeTheyAreBroken) {
  expect_sound("hostile.msgpack", whole());
  expect_sound("hostile.msgpack", value("\x01"));
  expect_sound("hostile.msgpack", chunked(kShape, kChunks));
}

TEST(HostileFlax, CutsAreRefused) { expect_cuts_refused("hostile.msgpack", whole()); }

TEST(HostileFlax, Items) {
  expect_refused(
      "hostile.msgpack",
      std::array{
          Case{"an item begins with a byte of a kind", [] { return value("\xc1"); }, kInvalid, "value",
               "flax: v: item: no item begins with 0xc1"},
          Case{"nothing follows", [] { return whole().raw("more", "\xc0"); }, kInvalid, "more",
               "flax: 1 bytes after the end"},
          Case{"pairs are in the file", [] { return whole().raw("map", "\xdf\xff\xff\xff\xff"); }, kInvalid, "map",
               "map: 4294967295 pairs do not fit the 22 bytes left"},
          Case{"items are in the file", [] { return value("\xdd\xff\xff\xff\xff"); }, kInvalid, "value",
               "flax: v: array: 4294967295 items"},
          Case{"text ends in the file", [] { return value("\xdb\xff\xff\xff\xff"); }, kInvalid, kEndOfFile,
               "flax: v: text: 4294967295 bytes wanted, 0 left"},
          Case{"an array ends in the file", [] { return whole().raw("head", "\xc9\x7f\xff\xff\xff\x01"); }, kInvalid,
               "parts", "flax: w: extension: 2147483647 bytes wanted"},
          Case{"keys are text", [] { return whole().raw("key", "\x01"); }, kInvalid, "key", "key: expected text"},
          Case{"keys are UTF-8", [] { return whole().raw("key", "\xa1\xff"); }, kInvalid, "key", "it is not UTF-8"},
          Case{"keys come once", [] { return value("\x01").raw("second", text("w")); }, kInvalid, "second",
               "flax: w: the key appears twice"},
          Case{"text is UTF-8", [] { return value("\xa1\xff"); }, kInvalid, "value", "it is not UTF-8"},
          Case{"nesting is bounded", [] { return value(std::string(100, '\x91') + '\xc0'); }, kInvalid, kAnywhere,
               "nested deeper than 64 levels"},
          Case{"there is an array", [] { return ByteFile().raw("map", "\x81\xa1w\x01"); }, kInvalid, "map",
               "expected at least one array"},
          Case{"names come once",
               [] {
                 return ByteFile()
                     .raw("map", "\x82")
                     .raw("one", text("a.b") + chunk("x"))
                     .raw("two", text("a") + map(text("b") + chunk("x"), 1));
               },
               kInvalid, "two + 5", "flax: a.b: the name appears twice"},
          Case{"names are of a bounded size",
               [] {
                 ByteFile file;
                 file.raw("map", "\x81").raw("key", std::string("\xda\x20\x00", 3) + std::string(0x2000, 'w'));
                 return file.raw("array", chunk("x"));
               },
               kUnsupported, "key", "a name has 8192 bytes, at most 4096 are read"},
      });
}

TEST(HostileFlax, Arrays) {
  expect_refused(
      "hostile.msgpack",
      std::array{
          Case{"an array has three parts", [] { return whole().raw("parts", "\x92"); }, kInvalid, "parts",
               "flax: w: array: expected an array of a shape, a type and elements, found an array"},
          Case{"a shape is a list", [] { return with("\x93\x03" + text("int8") + bytes("abc")); }, kInvalid, kAnywhere,
               "shape: expected an array, found a natural number"},
          Case{"lengths are natural", [] { return with("\x93\x91\xff" + text("int8") + bytes("")); }, kInvalid,
               kAnywhere, "shape: expected natural numbers, found a negative number"},
          Case{"dimensions are few",
               [] {
                 return with(std::string("\x93\xdc\x00\x41", 4) + std::string(65, '\x01') + text("int8") + bytes("x"));
               },
               kInvalid, kAnywhere, "more than 64 dimensions"},
          Case{"a size does not overflow",
               [] {
                 const std::string large = std::string("\xcf\x80\0\0\0\0\0\0\0", 9);
                 return with("\x93\x92" + large + large + text("int8") + bytes(""));
               },
               kInvalid, kAnywhere, "more than 2^64 bytes"},
          Case{"bytes do not overflow",
               [] { return with(std::string("\x93\x91\xcf\x80\0\0\0\0\0\0\0", 11) + text("int64") + bytes("")); },
               kInvalid, kAnywhere, "more than 2^64 bytes"},
          Case{"a type is text", [] { return with("\x93\x91\x01\x01" + bytes("x")); }, kInvalid, kAnywhere,
               "element type: expected text"},
          Case{"a type's name is short", [] { return with("\x93\x90\xd9\x41" + std::string(65, 'x') + bytes("x")); },
               kInvalid, kAnywhere, "more than 64 bytes"},
          Case{"a type's name is UTF-8", [] { return with("\x93\x90\xa1\xff" + bytes("x")); }, kInvalid, kAnywhere,
               "element type: it is not UTF-8"},
          Case{"elements are bytes", [] { return with("\x93\x90" + text("int8") + "\x01"); }, kInvalid, kAnywhere,
               "elements: expected bytes, found a natural number"},
          Case{"elements are all there", [] { return whole().raw("shape", "\x91\x04"); }, kInvalid, "data",
               "elements: [4] of int16 needs 8 bytes, 6 are there"},
          Case{"elements are not more", [] { return whole().raw("shape", "\x91\x02"); }, kInvalid, "data",
               "elements: [2] of int16 needs 4 bytes, 6 are there"},
          Case{"elements end in their array", [] { return whole().raw("elements", "\xc4\x07"); }, kInvalid, "data",
               "flax: w: bytes: 7 bytes wanted, 6 left"},
          Case{"nothing follows in an array", [] { return with("\x93\x90" + text("int8") + bytes("x") + "\xc0"); },
               kInvalid, kAnywhere, "1 bytes after its elements"},
          Case{"an array is not empty", [] { return with(""); }, kInvalid, kEndOfFile, "item: 1 byte wanted, 0 left"},
      });
}

TEST(HostileFlax, Chunks) {
  expect_refused(
      "hostile.msgpack",
      std::array{
          Case{"there is a shape", [] { return chunked(kShape, kChunks).raw("shape key", text("shapf")); }, kInvalid,
               "inner", "flax: w: array in chunks: the key \"shape\" is missing"},
          Case{"there are chunks", [] { return chunked(kShape, kChunks).raw("chunks key", text("chunkz")); }, kInvalid,
               "inner", "the key \"chunks\" is missing"},
          Case{"a shape is a map", [] { return chunked("\x91\x03", kChunks); }, kInvalid, "shape",
               "w: shape: expected a map, found an array"},
          Case{"lengths are natural", [] { return chunked(map(text("0") + "\xff", 1), kChunks); }, kInvalid,
               "shape + 3", "shape: expected a natural number, found a negative number"},
          Case{"dimensions are numbered from 0", [] { return chunked(map(text("1") + "\x03", 1), kChunks); }, kInvalid,
               "shape + 1", "shape: expected the keys 0 to 0, found \"1\""},
          Case{"numbers have no zeros in front", [] { return chunked(map(text("00") + "\x03", 1), kChunks); }, kInvalid,
               "shape + 1", "found \"00\""},
          Case{"chunks are a map", [] { return chunked(kShape, "\x91" + chunk("abc")); }, kInvalid, "chunks",
               "w: chunks: expected a map"},
          Case{"no chunk is missing", [] { return chunked(kShape, map(text("1") + chunk("abc"), 1)); }, kInvalid,
               "chunks + 1", "chunks: expected the keys 0 to 0"},
          Case{"there is a chunk", [] { return chunked(map(text("0") + std::string(1, '\0'), 1), "\x80"); }, kInvalid,
               "inner", "chunks: expected at least one, found none"},
          Case{"chunks are arrays", [] { return chunked(kShape, map(text("0") + "\x01", 1)); }, kInvalid, "chunks + 3",
               "chunks: expected arrays"},
          Case{"chunks are lists",
               [] {
                 return chunked(kShape,
                                map(text("0") + extension("\x93\x92\x01\x03" + text("int8") + bytes("abc")), 1));
               },
               kInvalid, "chunks + 3", "chunks: expected one dimension, found [1, 3]"},
          Case{"chunks have one type",
               [] { return chunked(kShape, map(text("0") + chunk("ab") + text("1") + chunk("c", "bool"), 2)); },
               kInvalid, kAnywhere, "chunks: expected int8 as in the first chunk, found bool"},
          Case{"chunks hold the shape's elements", [] { return chunked(map(text("0") + "\x04", 1), kChunks); },
               kInvalid, "inner", "chunks: they have 3 elements, expected those of shape [4]"},
      });
}

TEST(HostileFlax, Scalars) {
  expect_refused(
      "hostile.msgpack",
      std::array{
          Case{"a scalar has no dimensions",
               [] { return value(extension("\x93\x91\x01" + text("int8") + bytes("x"), 3)); }, kUnsupported, "value",
               "flax: v: a scalar of int8 with the shape [1] is not read"},
          Case{"a scalar's type is known", [] { return value(extension("\x93\x90" + text("int4") + bytes("x"), 3)); },
               kUnsupported, "value", "a scalar of int4"},
          Case{"a complex number has two parts", [] { return value(extension("\x91\x01", 2)); }, kInvalid, "value",
               "flax: v: complex number: expected two real numbers"},
          Case{"its parts are real", [] { return value(extension("\x92\x01\x01", 2)); }, kInvalid, "value",
               "expected two real numbers"},
          Case{"its parts are there", [] { return value(extension("\x92\xca\x01", 2)); }, kInvalid, kAnywhere,
               "4 bytes wanted, 1 left"},
      });
}

TEST(HostileFlax, SmallFilesThatClaimMuchFailSoon) {
  const std::string array = text("w") + chunk("x");
  expect_harmless("hostile.msgpack", "\x82" + array + text("v") + std::string("\xdd\x00\x98\x96\x80", 5) +
                                         std::string(10'000'000, '\xc0'));
  std::string keys = "\x82" + array + text("v") + std::string("\xdf\x00\x0f\x42\x40", 5);
  for (int i = 0; i < 1'000'000; ++i) {
    keys += "\xce" + le(static_cast<std::uint64_t>(i), 4);
    keys += "\xc0";
  }
  expect_harmless("hostile.msgpack", keys);
  // The names of many arrays begin with a long key.
  std::string names =
      std::string("\x81\xda\x0f\x00", 4) + std::string(0x0f00, 'w') + std::string("\xdd\x00\x03\x0d\x40", 5);
  for (int i = 0; i < 200'000; ++i) names += chunk("x");
  expect_harmless("hostile.msgpack", names);
}

}  // namespace
}  // namespace poise::hostile
