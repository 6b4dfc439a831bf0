// Breaks every rule of zTensor 1.1 once ("The Manifest" and "Parsing & Safety" of its specification).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include <fmt/format.h>

#include <poise/verify.hpp>

#include "formats/format.hpp"
#include "support/bytes.hpp"
#include "support/cbor_notation.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/hostile_cases.hpp"
#include "support/model_files.hpp"

namespace poise::hostile {
namespace {

using namespace support;
using testing::AllOf;
using testing::HasSubstr;
using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr auto kInvalid = ErrorKind::invalid_file;

// Returns the map of a component, with the fields in the order of the specification.
std::string component(std::string_view dtype, std::uint64_t offset, std::uint64_t length, const Entries& more = {}) {
  Entries entries = {{text("dtype"), text(dtype)}, {text("offset"), number(offset)}, {text("length"), number(length)}};
  entries.insert(entries.end(), more.begin(), more.end());
  return map(entries);
}

std::string object(const std::vector<std::uint64_t>& shape, std::string_view format, const Entries& components,
                   const Entries& more = {}) {
  std::vector<std::string> dimensions;
  for (const std::uint64_t dimension : shape) dimensions.push_back(number(dimension));
  Entries entries = {
      {text("shape"), array(dimensions)}, {text("format"), text(format)}, {text("components"), map(components)}};
  entries.insert(entries.end(), more.begin(), more.end());
  return map(entries);
}

// Returns a file: magic, blobs of 64 bytes each from 64 on, the manifest in three fields (what stands before the
// objects, each object, what stands behind), its size, the magic.
ByteFile file_of(const Entries& objects, const std::vector<std::string>& blobs = {
                                             std::string(64, '\0'), std::string(64, '\0'), std::string(64, '\0')}) {
  ByteFile file;
  file.raw("magic", "ZTEN1000").pad("magic padding", 64);
  for (std::size_t i = 0; i < blobs.size(); ++i)
    file.raw("blob " + std::to_string(i), blobs[i]).pad("blob padding " + std::to_string(i), 64);
  file.raw("root", hex("a2") + text("version") + hex("65 31 2e"))
      .raw("minor version", "1.0")
      .raw("objects", text("objects") + long_head(5, objects.size(), 0));
  for (std::size_t i = 0; i < objects.size(); ++i)
    file.raw("name " + std::to_string(i), objects[i].first).raw("object " + std::to_string(i), objects[i].second);
  file.raw("behind", "");
  return file.size_of("size", "root", "behind").raw("footer magic", "ZTEN1000");
}

// Returns a file with one object, named "t".
ByteFile one_object(const std::string& encoded) { return file_of({{text("t"), encoded}}); }
// Returns a file with a dense object of four elements, and any component, which is a field.
ByteFile dense(const std::string& component) {
  const std::string encoded = object({4}, "dense", {{text("data"), component}});
  return one_object(encoded.substr(0, encoded.size() - component.size())).raw("behind", component);
}

ByteFile whole() { return dense(component("f32", 64, 16)); }

// Returns a file with this manifest.
ByteFile with_manifest(const std::string& manifest) {
  ByteFile file;
  file.raw("magic", "ZTEN1000").pad("magic padding", 64).raw("manifest", manifest).raw("behind", "");
  return file.size_of("size", "manifest", "behind").raw("footer magic", "ZTEN1000");
}

const HostileTable kTable("zt1", [] { return whole().bytes(); });

TEST(HostileZtensor1, TheFileIsSoundBeforeItIsBroken) {
  ByteFile file;
  file.raw("magic", "ZTEN1000").pad("magic padding", 64).raw("blob", elements<float>({1, 2, 3, 4}));
  const std::string manifest =
      map({{text("version"), text("1.1.0")},
           {text("objects"), map({{text("t"), object({4}, "dense", {{text("data"), component("f32", 64, 16)}})}})}});
  file.raw("manifest", manifest).size_of("size", "manifest", "manifest").raw("footer magic", "ZTEN1000");
  expect_sound("hostile.zt", file);
}

// The error of open() names the first fault; verify() lists all and checks the valid tensors.
TEST(HostileZtensor1, EveryFaultIsListed) {
  const std::string digest = "crc32c:0x00000001";
  const auto of = [](const std::string& component) { return object({4}, "dense", {{text("data"), component}}); };
  const std::string bytes = file_of({{text("a"), of(component("f32", 64, 12))},
                                     {text("b"), of(component("f32", 128, 16, {{text("digest"), text(digest)}}))},
                                     {text("c"), of(component("f32", 65, 16))},
                                     {text("d"), of(component("f32", 1024, 16))}})
                                .bytes();
  EXPECT_THAT(message_of([&] { open(source(bytes, "hostile.zt")); }), HasSubstr("(and 2 more faults)"));
  const TemporaryDirectory directory;
  const auto path = directory / "hostile.zt";
  std::ofstream(path, std::ios::binary) << bytes;
  const VerifyReport report = verify(path);
  std::vector<std::string> faults;
  for (const Finding& fault : report.faults) faults.push_back(fault.message);
  ASSERT_EQ(faults.size(), 4U);
  EXPECT_THAT(faults[0], AllOf(HasSubstr("a: "), HasSubstr("12")));
  EXPECT_THAT(faults[1], HasSubstr("c: data: offset: 65 is not a multiple of 64"));
  EXPECT_THAT(faults[2], HasSubstr("d: data: 16 bytes at 1024 reach beyond the data"));
  EXPECT_THAT(faults[3], AllOf(HasSubstr("tensor b"), HasSubstr("crc32c")));
  EXPECT_EQ(report.tensors, 1U);
}

// A file may have a million faults.
TEST(HostileZtensor1, AtMostAHundredFaultsAreListed) {
  Entries objects;
  for (int i = 100; i < 400; ++i)
    objects.emplace_back(text(fmt::format("t{}", i)), object({4}, "dense", {{text("data"), component("f32", 65, 16)}}));
  const ByteFile file = with_manifest(map({{text("version"), text("1.1.0")}, {text("objects"), map(objects)}}));
  EXPECT_THAT(message_of([&] { open(source(file.bytes(), "hostile.zt")); }),
              HasSubstr("t100: data: offset: 65 is not a multiple of 64 (and 99 more faults)"));
}

TEST(HostileZtensor1, Container) {
  expect_refused("hostile.zt",
                 std::array{
                     Case{"the header magic is right", [] { return whole().raw("magic", "ZTEN1001"); }, kInvalid,
                          "magic", "header magic"},
                     Case{"the footer magic is right", [] { return whole().raw("footer magic", "ZTEN1001"); }, kInvalid,
                          kEndOfFile, "footer magic"},
                     Case{"the footer magic is there", [] { return whole().cut("footer magic", 7); }, kInvalid,
                          kEndOfFile, "footer magic"},
                     Case{"the file is more than a magic", [] { return whole().cut("magic padding"); }, kInvalid,
                          kEndOfFile, "footer magic"},
                     Case{"the manifest is at most 1 GiB", [] { return whole().u64("size", (1ULL << 30) + 1); },
                          kInvalid, "size", "manifest size: 1073741825 bytes, at most 1073741824"},
                     Case{"the manifest's size does not overflow", [] { return whole().u64("size", UINT64_MAX); },
                          kInvalid, "size", "manifest size"},
                     Case{"the manifest begins behind the magic", [] { return with_manifest(map({})).u64("size", 58); },
                          kInvalid, "size", "manifest size: 58 bytes, but only 57"},
                     Case{"the manifest is not empty", [] { return whole().u64("size", 0); }, kInvalid, "size",
                          "needs more than the 0 bytes left"},
                 });
}

TEST(HostileZtensor1, Cbor) {
  expect_refused(
      "hostile.zt",
      std::array{
          Case{"the root is a map", [] { return with_manifest(array({})); }, kInvalid, "manifest",
               "expected a map, found an array"},
          Case{"the item ends", [] { return with_manifest(hex("a1 67 61 62")); }, kInvalid, kAnywhere,
               "CBOR: an item needs more"},
          Case{"nothing is behind it",
               [] {
                 return with_manifest(map({{text("version"), text("1.1.0")}, {text("objects"), map({})}}))
                     .raw("behind", "x")
                     .size_of("size", "manifest", "behind");
               },
               kInvalid, "behind", "1 bytes after the end"},
          Case{"a count is no more than the bytes", [] { return with_manifest(hex("bb ff ff ff ff ff ff ff ff")); },
               kInvalid, "size", "a map of 18446744073709551615 entries does not fit"},
          Case{"an array's, too", [] { return with_manifest(hex("a1 61 61 9b 00 00 00 00 ff ff ff ff")); }, kInvalid,
               "size", "an array of 4294967295 entries does not fit"},
          Case{"a text ends inside the manifest", [] { return with_manifest(hex("a1 7b 7f ff ff ff ff ff ff ff")); },
               kInvalid, kAnywhere, "CBOR: an item needs more"},
          Case{"text is UTF-8", [] { return with_manifest(hex("a1 62 c0 af 00")); }, kInvalid, kAnywhere,
               "CBOR: text is not UTF-8"},
          Case{"reserved heads are refused", [] { return with_manifest(hex("a1 61 61 1c")); }, kInvalid, kAnywhere,
               "no item begins with 0x1c"},
          Case{"a break belongs to an indefinite length", [] { return with_manifest(hex("a1 61 61 ff")); }, kInvalid,
               kAnywhere, "a break where an item is expected"},
          Case{"pieces of a text are text", [] { return with_manifest(hex("a1 7f 41 61 ff 00")); }, kInvalid, kAnywhere,
               "a piece of text is a byte string"},
          Case{"nesting is bounded", [] { return with_manifest(hex("a1 61 61") + std::string(100000, '\x81')); },
               kInvalid, kAnywhere, "nested deeper than 64 levels"},
          Case{"nesting of indefinite maps, too",
               [] { return with_manifest(hex("a1 61 61") + std::string(100000, '\x9f')); }, kInvalid, kAnywhere,
               "nested deeper than 64 levels"},
          Case{"a key stands once",
               [] {
                 return with_manifest(map({{text("version"), text("1.1.0")}, {text("version"), text("1.1.0")}}));
               },
               kInvalid, kAnywhere, "the key \"version\" appears twice"},
          Case{"in attributes, too",
               [] {
                 return with_manifest(
                     map({{text("attributes"), map({{text("a"), number(1)}, {text("a"), number(2)}})}}));
               },
               kInvalid, kAnywhere, "attributes: key: the key \"a\" appears twice"},
          Case{"and in what is passed over",
               [] {
                 return with_manifest(map({{text("else"), map({{number(7), number(1)}, {number(7), number(2)}})}}));
               },
               kInvalid, kAnywhere, "appears twice"},
      });
}

TEST(HostileZtensor1, Root) {
  expect_refused(
      "hostile.zt",
      std::array{
          Case{"version is there",
               [] {
                 return with_manifest(map({{text("objects"), map({})}}));
               },
               kInvalid, "behind", "\"version\" is missing"},
          Case{"version is text",
               [] {
                 return with_manifest(map({{text("version"), number(1)}}));
               },
               kInvalid, kAnywhere, "version: expected text, found an unsigned integer"},
          Case{"version is 1.x",
               [] {
                 return with_manifest(map({{text("version"), text("3.0")}, {text("objects"), map({})}}));
               },
               ErrorKind::unsupported, "behind", "version: expected 1.x, found \"3.0\""},
          Case{"objects is there",
               [] {
                 return with_manifest(map({{text("version"), text("1.1.0")}}));
               },
               kInvalid, "behind", "\"objects\" is missing"},
          Case{"objects is a map",
               [] {
                 return with_manifest(map({{text("objects"), array({})}}));
               },
               kInvalid, kAnywhere, "objects: expected a map, found an array"},
          Case{"objects have names",
               [] {
                 return with_manifest(map({{text("objects"), map({{number(1), map({})}})}}));
               },
               kInvalid, kAnywhere, "objects: key that is not text: expected a name"},
          Case{"attributes are a map",
               [] {
                 return with_manifest(map({{text("attributes"), text("x")}}));
               },
               kInvalid, kAnywhere, "attributes: expected a map, found text"},
          Case{"attributes have text keys",
               [] {
                 return with_manifest(map({{text("attributes"), map({{number(1), number(1)}})}}));
               },
               kInvalid, kAnywhere, "attributes: expected text keys"},
          Case{"tensors are 1.0's objects",
               [] {
                 return with_manifest(map({{text("objects"), map({})}, {text("tensors"), map({})}}));
               },
               kInvalid, kAnywhere, "expected \"objects\" or \"tensors\", found both"},
          Case{"a name stands once",
               [] {
                 return file_of({{text("t"), object({0}, "dense", {{text("data"), component("u8", 64, 0)}})},
                                 {text("t"), object({0}, "dense", {{text("data"), component("u8", 64, 0)}})}});
               },
               kInvalid, kAnywhere, "the tensor name \"t\" appears twice"},
      });
}

TEST(HostileZtensor1, Objects) {
  expect_refused(
      "hostile.zt",
      std::array{
          Case{"an object is a map", [] { return one_object(number(1)); }, kInvalid, "object 0",
               "objects: t: expected a map, found an unsigned integer"},
          Case{"shape is there",
               [] {
                 return one_object(map({{text("format"), text("dense")}, {text("components"), map({})}}));
               },
               kInvalid, "object 0", "objects: t: \"shape\" is missing"},
          Case{"format is there",
               [] {
                 return one_object(map({{text("shape"), array({})}, {text("components"), map({})}}));
               },
               kInvalid, "object 0", "objects: t: \"format\" is missing"},
          Case{"components are there",
               [] {
                 return one_object(map({{text("shape"), array({})}, {text("format"), text("dense")}}));
               },
               kInvalid, "object 0", "objects: t: \"components\" is missing"},
          Case{"a shape is an array",
               [] {
                 return one_object(map({{text("shape"), number(4)}}));
               },
               kInvalid, kAnywhere, "objects: t: shape: expected an array"},
          Case{"the rank is at most 64",
               [] {
                 return one_object(map({{text("shape"), array(std::vector<std::string>(65, number(1)))}}));
               },
               kInvalid, kAnywhere, "objects: t: shape: item 64: a rank of more than 64"},
          Case{"a dimension is not negative",
               [] {
                 return one_object(map({{text("shape"), array({negative(0)})}}));
               },
               kInvalid, kAnywhere, "objects: t: shape: item 0: expected an unsigned integer, found a negative"},
          Case{"a dimension is an integer",
               [] {
                 return one_object(map({{text("shape"), array({number(1), text("2")})}}));
               },
               kInvalid, kAnywhere, "objects: t: shape: item 1: expected an unsigned integer, found text"},
          Case{"the shape fits 64 bits",
               [] {
                 return one_object(object({1ULL << 32, 1ULL << 32}, "dense", {{text("data"), component("u8", 64, 0)}}));
               },
               kInvalid, "object 0", "t: shape: [4294967296, 4294967296] overflows"},
          Case{"the bytes fit 64 bits",
               [] {
                 return one_object(object({1ULL << 62}, "dense", {{text("data"), component("f64", 64, 0)}}));
               },
               kInvalid, "object 0", "shape [4611686018427387904] of f64 overflows"},
          Case{"a role is text",
               [] {
                 return one_object(object({4}, "dense", {{number(1), component("f32", 64, 16)}}));
               },
               kInvalid, kAnywhere, "components: key that is not text: expected a role"},
          Case{"a role stands once",
               [] {
                 return one_object(
                     object({4}, "dense",
                            {{text("data"), component("f32", 64, 16)}, {text("data"), component("f32", 64, 16)}}));
               },
               kInvalid, kAnywhere, "components: key: the key \"data\" appears twice"},
          Case{"dense has data",
               [] {
                 return one_object(object({4}, "dense", {{text("values"), component("f32", 64, 16)}}));
               },
               kInvalid, "object 0", "t: dense needs the component data"},
          Case{"what it has besides data does not stand for it",
               [] {
                 return one_object(
                     object({4}, "dense",
                            {{text("data"), component("f32", 64, 15)}, {text("more"), component("f32", 128, 16)}}));
               },
               kInvalid, "object 0", "t: shape [4] of f32 needs 16 bytes, data holds 15"},
          Case{"dense has something", [] { return one_object(object({4}, "dense", {})); }, kInvalid, "object 0",
               "t: dense needs the component data"},
      });
}

TEST(HostileZtensor1, Components) {
  const auto check = [](std::string_view rule, std::string (*encode)(), std::string_view names,
                        std::string_view at = "behind") {
    static std::string (*current)();
    current = encode;
    const Case refused{rule, [] { return dense(current()); }, kInvalid, at, names};
    expect_refused("hostile.zt", std::span(&refused, 1));
  };
  check(
      "dtype is there",
      [] {
        return map({{text("offset"), number(64)}, {text("length"), number(16)}});
      },
      "components: data: \"dtype\" is missing");
  check(
      "dtype is text",
      [] {
        return map({{text("dtype"), number(1)}});
      },
      "data: dtype: expected text", kAnywhere);
  check(
      "offset is there",
      [] {
        return map({{text("dtype"), text("f32")}, {text("length"), number(16)}});
      },
      "components: data: \"offset\" is missing");
  check(
      "length is there",
      [] {
        return map({{text("dtype"), text("f32")}, {text("offset"), number(64)}});
      },
      "components: data: \"length\" is missing");
  check(
      "offset is not negative",
      [] {
        return map({{text("offset"), negative(63)}});
      },
      "data: offset: expected an unsigned integer", kAnywhere);
  check(
      "length is an integer",
      [] {
        return map({{text("length"), text("16")}});
      },
      "data: length: expected an unsigned integer", kAnywhere);
  check(
      "encoding is text",
      [] {
        return component("f32", 64, 16, {{text("encoding"), number(0)}});
      },
      "data: encoding: expected text", kAnywhere);
  check(
      "digest is text",
      [] {
        return component("f32", 64, 16, {{text("digest"), bytes("x")}});
      },
      "data: digest: expected text, found a byte string", kAnywhere);
  check(
      "offset is a multiple of 64", [] { return component("f32", 65, 16); },
      "t: data: offset: 65 is not a multiple of 64");
  check(
      "offset is after the magic", [] { return component("f32", 0, 16); },
      "t: data: offset: 0 is before the first place");
  check(
      "the blob ends before the manifest", [] { return component("f32", 256, 16); },
      "t: data: 16 bytes at 256 reach beyond the data, which end at 256");
  check(
      "the blob begins before the manifest", [] { return component("f32", 1ULL << 40, 16); }, "reach beyond the data");
  check(
      "offset and length do not overflow", [] { return component("f32", UINT64_MAX - 63, 64); },
      "reach beyond the data");
  check(
      "length does not overflow", [] { return component("f32", 64, UINT64_MAX); }, "reach beyond the data");
  check(
      "length is that of the shape", [] { return component("f32", 64, 15); },
      "t: shape [4] of f32 needs 16 bytes, data holds 15", "object 0");
  check(
      "length is not longer", [] { return component("f32", 64, 17); },
      "t: shape [4] of f32 needs 16 bytes, data holds 17", "object 0");
  check(
      "a complex number is two", [] { return component("complex64", 64, 16); },
      "t: shape [4] of complex64 needs 32 bytes", "object 0");
  check(
      "raw bytes are not longer when decoded",
      [] {
        return component("f32", 64, 16, {{text("uncompressed_length"), number(32)}});
      },
      "t: data: uncompressed_length: expected 16, the length of the raw bytes, found 32");
  check(
      "zstd cannot be that good",
      [] {
        return component("f32", 64, 4,
                         {{text("encoding"), text("zstd")}, {text("uncompressed_length"), number(1ULL << 40)}});
      },
      "cannot decode to 1099511627776", "blob 0");
}

TEST(HostileZtensor1, Overlaps) {
  static constexpr auto kTwo = [](std::uint64_t first, std::uint64_t read_first_bytes, std::uint64_t second,
                                  std::uint64_t second_bytes) {
    return file_of(
        {{text("a"), object({read_first_bytes}, "dense", {{text("data"), component("u8", first, read_first_bytes)}})},
         {text("b"), object({second_bytes}, "dense", {{text("data"), component("u8", second, second_bytes)}})}});
  };
  expect_refused("hostile.zt",
                 std::array{
                     Case{"the end of one is not the beginning of another", [] { return kTwo(64, 65, 128, 64); },
                          kInvalid, kAnywhere, "b: data: 64 bytes at 128 overlap those of a: data at 64"},
                     Case{"one does not lie in another", [] { return kTwo(64, 192, 128, 1); }, kInvalid, kAnywhere,
                          "b: data: 1 bytes at 128 overlap"},
                     Case{"one is not the beginning of another", [] { return kTwo(64, 64, 64, 63); }, kInvalid,
                          kAnywhere, "overlap"},
                 });
}

// Returns a sparse object of two rows and three columns, with the elements (0, 1) and (1, 2): values of 4 bytes, u64
// indices.
ByteFile sparse_rows(const std::string& indices, const std::string& pointers, std::uint64_t values = 8) {
  const Entries parts = {{text("values"), component("f32", 64, values)},
                         {text("indices"), component("u64", 128, indices.size())},
                         {text("indptr"), component("u64", 192, pointers.size())}};
  return file_of({{text("t"), object({2, 3}, "sparse_csr", parts)}}, {elements<float>({1, 2}), indices, pointers});
}
std::string numbers(const std::vector<std::uint64_t>& values) { return elements(values); }

ByteFile coordinates(const std::string& coords) {
  const Entries parts = {{text("values"), component("f32", 64, 8)},
                         {text("coords"), component("u64", 128, coords.size())}};
  return file_of({{text("t"), object({2, 3}, "sparse_coo", parts)}}, {elements<float>({1, 2}), coords});
}

TEST(HostileZtensor1, Sparse) {
  expect_refused(
      "hostile.zt",
      std::array{
          Case{"rows have rank 2",
               [] {
                 return one_object(object({2}, "sparse_csr", {{text("values"), component("f32", 64, 0)}}));
               },
               kInvalid, "object 0", "compressed sparse rows have rank 2"},
          Case{"there are indices",
               [] {
                 return one_object(
                     object({2, 3}, "sparse_csr",
                            {{text("values"), component("f32", 64, 8)}, {text("indptr"), component("u64", 128, 24)}}));
               },
               kInvalid, "object 0", "sparse_csr needs the part indices"},
          Case{"there is nothing else",
               [] {
                 return one_object(object({2, 3}, "sparse_coo",
                                          {{text("values"), component("f32", 64, 8)},
                                           {text("coords"), component("u64", 128, 32)},
                                           {text("more"), component("u8", 192, 1)}}));
               },
               kInvalid, "object 0", "sparse_coo has 2 parts, found 3"},
          Case{"indices are integers",
               [] {
                 return one_object(
                     object({2, 3}, "sparse_coo",
                            {{text("values"), component("f32", 64, 8)}, {text("coords"), component("f32", 128, 16)}}));
               },
               kInvalid, "object 0", "coords: expected an integer type, found f32"},
          Case{"pointers are rows + 1",
               [] {
                 return sparse_rows(numbers({1, 2}), numbers({0, 2}));
               },
               kInvalid, "object 0", "indptr: expected 24 bytes, found 16"},
          Case{"values are as many as indices",
               [] {
                 return sparse_rows(numbers({1, 2}), numbers({0, 1, 2}), 4);
               },
               kInvalid, "object 0", "values: expected 8 bytes, found 4"},
          Case{"coordinates are whole",
               [] {
                 return coordinates(numbers({0, 1, 2}));
               },
               kInvalid, "object 0", "coords: 24 bytes are not a whole number of coordinates"},
          Case{"a list has a rank",
               [] {
                 return one_object(
                     object({}, "sparse_coo",
                            {{text("values"), component("f32", 64, 4)}, {text("coords"), component("u64", 128, 0)}}));
               },
               kInvalid, "object 0", "a coordinate list has rank 1 or more"},
      });
  expect_sound("hostile.zt", sparse_rows(numbers({1, 2}), numbers({0, 1, 2})));
  expect_sound("hostile.zt", coordinates(numbers({0, 1, 1, 2})));
  expect_faults("hostile.zt",
                std::array{
                    VerifyCase{"pointers begin with 0",
                               [] {
                                 return sparse_rows(numbers({1, 2}), numbers({1, 1, 2}));
                               },
                               "blob 2", "indptr: it begins with 1, expected 0"},
                    VerifyCase{"pointers do not fall",
                               [] {
                                 return sparse_rows(numbers({1, 2}), numbers({0, 2, 1}));
                               },
                               "blob 2 + 16", "indptr: it falls from 2 to 1 after row 1"},
                    VerifyCase{"pointers stay inside",
                               [] {
                                 return sparse_rows(numbers({1, 2}), numbers({0, UINT64_MAX, 2}));
                               },
                               "blob 2 + 8", "indptr: row 0 ends at element 18446744073709551615, there are 2"},
                    VerifyCase{"pointers end with the count",
                               [] {
                                 return sparse_rows(numbers({1, 2}), numbers({0, 1, 1}));
                               },
                               "blob 2 + 16", "indptr: it ends with 1, expected 2"},
                    VerifyCase{"a column exists",
                               [] {
                                 return sparse_rows(numbers({1, 3}), numbers({0, 1, 2}));
                               },
                               "blob 1 + 8", "indices: element 1 in row 1 is in column 3, there are 3"},
                    VerifyCase{"a column stands once in a row",
                               [] {
                                 return sparse_rows(numbers({1, 1}), numbers({0, 2, 2}));
                               },
                               "blob 1", "indices: column 1 appears twice in row 0"},
                    VerifyCase{"a coordinate exists",
                               [] {
                                 return coordinates(numbers({0, 2, 1, 2}));
                               },
                               "blob 1 + 8", "coords: element 1 is at 2 in dimension 0, which has 2"},
                    VerifyCase{"a cell stands once",
                               [] {
                                 return coordinates(numbers({1, 1, 2, 2}));
                               },
                               "blob 1", "coords: cell 5 appears twice"},
                });
}

ByteFile groups(const Entries& attributes, std::uint64_t scales = 4) {
  const Entries parts = {{text("packed_weight"), component("i32", 64, 8)},
                         {text("scales"), component("f16", 128, scales)},
                         {text("zeros"), component("f16", 192, 4)}};
  return one_object(object({2, 8}, "quantized_group", parts, {{text("attributes"), map(attributes)}}));
}
Entries scheme(std::uint64_t bits, std::uint64_t size, const std::string& packing) {
  return {{text("bits"), number(bits)}, {text("group_size"), number(size)}, {text("packing"), packing}};
}

TEST(HostileZtensor1, Groups) {
  expect_refused("hostile.zt",
                 std::array{
                     Case{"bits are there",
                          [] {
                            return groups({{text("group_size"), number(8)}});
                          },
                          kInvalid, "object 0", "tensor t: bits: expected an unsigned integer"},
                     Case{"there are bits", [] { return groups(scheme(0, 8, text("8_per_i32"))); }, kInvalid,
                          "object 0", "tensor t: bits: expected 1 to 8, found 0"},
                     Case{"there are at most 8", [] { return groups(scheme(9, 8, text("3_per_i32"))); }, kInvalid,
                          "object 0", "tensor t: bits: 9 is too large"},
                     Case{"a group has codes", [] { return groups(scheme(4, 0, text("8_per_i32"))); }, kInvalid,
                          "object 0", "tensor t: group_size"},
                     Case{"groups divide a row", [] { return groups(scheme(4, 3, text("8_per_i32"))); }, kInvalid,
                          "object 0", "tensor t: group_size: 3 does not divide the 8 codes"},
                     Case{"packing is text", [] { return groups(scheme(4, 8, number(8))); }, kInvalid, "object 0",
                          "tensor t: packing: expected text"},
                     Case{"packing is spelled right", [] { return groups(scheme(4, 8, text("8 per i32"))); }, kInvalid,
                          "object 0", "tensor t: packing: expected text such as 8_per_i32"},
                     Case{"packing has codes", [] { return groups(scheme(4, 8, text("0_per_i32"))); }, kInvalid,
                          "object 0", "tensor t: packing"},
                     Case{"packing is in integers", [] { return groups(scheme(4, 8, text("8_per_f32"))); }, kInvalid,
                          "object 0", "tensor t: packing"},
                     Case{"the codes fit their word", [] { return groups(scheme(5, 8, text("8_per_i32"))); }, kInvalid,
                          "object 0", "tensor t: packing: 8 codes of 5 bits do not fit into i32"},
                     Case{"the words are those of the packing", [] { return groups(scheme(4, 8, text("4_per_i16"))); },
                          kInvalid, "object 0", "tensor t: packed_weight: expected words of 16 bits"},
                     Case{"every group has a scale", [] { return groups(scheme(4, 8, text("8_per_i32")), 2); },
                          kInvalid, "object 0", "tensor t: scales: expected 2 elements"},
                     Case{"the axis exists",
                          [] {
                            Entries entries = scheme(4, 8, text("8_per_i32"));
                            entries.emplace_back(text("axis"), number(2));
                            return groups(entries);
                          },
                          kInvalid, "object 0", "tensor t: axis: 2 is too large"},
                 });
}

// Returns a zstd frame of one block that is not compressed (RFC 8878, section 3.1.1).
std::string zstd_frame(const std::string& content) {
  return hex("28 b5 2f fd 20") + le(content.size(), 1) + le(content.size() << 3 | 1, 3) + content;
}

// Returns a file with components of these types and contents, each a compressed blob.
ByteFile compressed(std::string_view format, const std::vector<std::uint64_t>& shape,
                    const std::vector<std::array<std::string, 3>>& parts, const Entries& attributes = {}) {
  Entries components;
  std::vector<std::string> blobs;
  for (const auto& [role, dtype, content] : parts) {
    blobs.push_back(zstd_frame(content));
    components.emplace_back(
        text(role), component(dtype, 64 * blobs.size(), blobs.back().size(), {{text("encoding"), text("zstd")}}));
  }
  return file_of({{text("t"), object(shape, format, components, {{text("attributes"), map(attributes)}})}}, blobs);
}

ByteFile compressed_groups(const Entries& attributes, const std::string& words = "i32",
                           const std::string& codes = std::string(8, '\0'),
                           const std::string& scales = std::string(4, '\0')) {
  return compressed(
      "quantized_group", {2, 8},
      {{"packed_weight", words, codes}, {"scales", "f16", scales}, {"zeros", "f16", std::string(4, '\0')}}, attributes);
}

ByteFile compressed_rows(const std::string& values, const std::string& indices, const std::string& pointers) {
  return compressed("sparse_csr", {2, 3},
                    {{"values", "f32", values}, {"indices", "u64", indices}, {"indptr", "u64", pointers}});
}

ByteFile compressed_coordinates(const std::string& values, const std::string& coords) {
  return compressed("sparse_coo", {2, 3}, {{"values", "f32", values}, {"coords", "u64", coords}});
}

// Opening reads the scheme from the header, even if the parts are compressed.
TEST(HostileZtensor1, GroupsHaveAScheme) {
  expect_refused(
      "hostile.zt",
      std::array{
          Case{"bits are there",
               [] {
                 return compressed_groups({{text("group_size"), number(8)}, {text("packing"), text("8_per_i32")}});
               },
               kInvalid, "object 0", "tensor t: bits: expected an unsigned integer"},
          Case{"there are attributes", [] { return compressed_groups({}); }, kInvalid, "object 0",
               "tensor t: bits: expected an unsigned integer"},
          Case{"bits are a number",
               [] {
                 return compressed_groups({{text("bits"), text("4")},
                                           {text("group_size"), number(8)},
                                           {text("packing"), text("8_per_i32")}});
               },
               kInvalid, "object 0", "tensor t: bits: expected an unsigned integer"},
          Case{"packing is text", [] { return compressed_groups(scheme(4, 8, number(8))); }, kInvalid, "object 0",
               "tensor t: packing: expected text"},
          Case{"groups divide a row", [] { return compressed_groups(scheme(4, 3, text("8_per_i32"))); }, kInvalid,
               "object 0", "tensor t: group_size: 3 does not divide the 8 codes"},
      });
}

const auto kHidden = std::array{
    VerifyCase{"codes are integers", [] { return compressed_groups(scheme(4, 8, text("8_per_i32")), "f32"); }, "blob 0",
               "tensor t: packed_weight: expected words of 32 bits, found f32"},
    VerifyCase{"there are as many codes as elements",
               [] { return compressed_groups(scheme(4, 8, text("8_per_i32")), "i32", std::string(4, '\0')); }, "blob 0",
               "tensor t: packed_weight: expected 2 elements of i32, found 4 bytes"},
    VerifyCase{"every group has a scale",
               [] {
                 return compressed_groups(scheme(4, 8, text("8_per_i32")), "i32", std::string(8, '\0'),
                                          std::string(2, '\0'));
               },
               "blob 0", "tensor t: scales: expected 2 elements of f16, found 2 bytes"},
    VerifyCase{"values are as many as indices",
               [] {
                 return compressed_rows(elements<float>({1}), numbers({1, 2}), numbers({0, 1, 2}));
               },
               "blob 0", "values: expected 8 bytes, found 4"},
    VerifyCase{"a column exists",
               [] {
                 return compressed_rows(elements<float>({1, 2}), numbers({1, 3}), numbers({0, 1, 2}));
               },
               "blob 1", "indices: element 1 in row 1 is in column 3, there are 3"},
    VerifyCase{"coordinates are whole",
               [] {
                 return compressed_coordinates(elements<float>({1, 2}), numbers({0, 1, 1}));
               },
               "blob 1", "coords: 24 bytes are not a whole number of coordinates"},
    VerifyCase{"a coordinate exists",
               [] {
                 return compressed_coordinates(elements<float>({1, 2}), numbers({0, 2, 1, 2}));
               },
               "blob 1", "coords: element 1 is at 2 in dimension 0, which has 2"},
};

TEST(HostileZtensor1, WhatCompressionHidesIsFoundWhenItIsDecoded) {
  expect_sound("hostile.zt", compressed_groups(scheme(4, 8, text("8_per_i32"))));
  expect_sound("hostile.zt", compressed_rows(elements<float>({1, 2}), numbers({1, 2}), numbers({0, 1, 2})));
  expect_sound("hostile.zt", compressed_coordinates(elements<float>({1, 2}), numbers({0, 1, 1, 2})));
  expect_faults("hostile.zt", kHidden);
}

// A writer that copied such a fault would make a file that cannot be opened.
TEST(HostileZtensor1, WhatCompressionHidesIsFoundByEveryWriter) {
  for (const VerifyCase& hidden : kHidden) {
    const Model model = open(source(hidden.file().bytes(), "hostile.zt"));
    for (const std::string_view format : {"zt", "zt1"}) {
      const Error error = support::error_of([&] { support::written(model, find_format_by_name(format)); });
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << hidden.rule << " as " << format << ": " << error.what();
      EXPECT_NE(error.message().find(hidden.names), std::string::npos) << format << ": " << error.what();
    }
  }
}

// Returns a file with a component that has a digest.
ByteFile digested(std::string_view digest) {
  const Entries parts = {{text("data"), component("u8", 64, 3, {{text("digest"), text(digest)}})}};
  return file_of({{text("t"), object({3}, "dense", parts)}}, {"abc"});
}

// The SHA-256 of "abc" is FIPS 180-2's example; its CRC-32C is that of the Intel instruction.
TEST(HostileZtensor1, Content) {
  expect_sound("hostile.zt", digested("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  expect_faults(
      "hostile.zt",
      std::array{
          VerifyCase{"a digest is that of the bytes",
                     [] { return digested("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ae"); },
                     "blob 0", "tensor t: data: the digest is sha256:ba78"},
          VerifyCase{"a checksum, too", [] { return digested("crc32c:0x00000000"); }, "blob 0",
                     "tensor t: data: the digest is crc32c:0x"},
          VerifyCase{"an unknown digest is not taken for right", [] { return digested("md5:00"); }, "blob 0",
                     "md5:00 is of a kind that Poise cannot compute", true},
          VerifyCase{"a layout is known",
                     [] {
                       return file_of(
                           {{text("t"), object({3}, "block_sparse", {{text("blocks"), component("u8", 64, 3)}})}},
                           {"abc"});
                     },
                     "blob 0",
                     "tensor t: the layout \"block_sparse\" is not known to this version of Poise: its elements were "
                     "not checked",
                     true},
          VerifyCase{
              "a type is known",
              [] {
                return file_of({{text("t"), object({3}, "dense", {{text("data"), component("f6", 64, 3)}})}}, {"abc"});
              },
              "blob 0",
              "tensor t: data: the type \"f6\" is not known to this version of Poise: its elements were not checked",
              true},
          VerifyCase{"dense has data alone",
                     [] {
                       return file_of({{text("t"), object({3}, "dense",
                                                          {{text("data"), component("u8", 64, 3)},
                                                           {text("x"), component("u8", 128, 3)}})}},
                                      {"abc", "xyz"});
                     },
                     "blob 1", "t: dense, but with the part x besides data", true},
          VerifyCase{"every blob is referred to",
                     [] {
                       return file_of({{text("t"), object({3}, "dense", {{text("data"), component("u8", 64, 3)}})}},
                                      {"abc", std::string(8, '\0')});
                     },
                     kAnywhere, "no entry of the file refers to these 125 bytes", true},
          VerifyCase{"padding is zero",
                     [] {
                       return file_of({{text("t"), object({3}, "dense", {{text("data"), component("u8", 64, 3)}})}},
                                      {"abc"})
                           .raw("magic padding", std::string(55, '\0') + "x")
                           .raw("blob 0", "abc");
                     },
                     kAnywhere, "the padding is not zero", true},
          VerifyCase{
              "a bool is 0 or 1",
              [] {
                return file_of({{text("t"), object({1}, "dense", {{text("data"), component("bool", 64, 1)}})}}, {"\2"});
              },
              "blob 0", "element 0 is neither 0 nor 1"},
          VerifyCase{"a number is finite",
                     [] {
                       return file_of({{text("t"), object({1}, "dense", {{text("data"), component("bf16", 64, 2)}})}},
                                      {le(0x7f80, 2)});
                     },
                     "blob 0", "element 0 is not finite", true},
          VerifyCase{"a complex number, too",
                     [] {
                       return file_of(
                           {{text("t"), object({1}, "dense", {{text("data"), component("complex64", 64, 8)}})}},
                           {le(0, 4) + le(0xff800000, 4)});
                     },
                     "blob 0", "element 0 is not finite", true},
          VerifyCase{"compressed bytes are zstd",
                     [] {
                       return file_of(
                           {{text("t"),
                             object({3}, "dense",
                                    {{text("data"), component("u8", 64, 3, {{text("encoding"), text("zstd")}})}})}},
                           {"abc"});
                     },
                     "blob 0", "tensor t: data: zstd"},
          VerifyCase{"an encoding is known",
                     [] {
                       return file_of(
                           {{text("t"),
                             object({3}, "dense",
                                    {{text("data"), component("u8", 64, 3, {{text("encoding"), text("lz4")}})}})}},
                           {"abc"});
                     },
                     "blob 0", "the encoding \"lz4\" of tensor t is not known"},
      });
}

TEST(HostileZtensor1, FlippedBits) {
  const ByteFile file = groups(scheme(4, 8, text("8_per_i32")));
  constexpr std::array<std::string_view, 5> kPadding = {"magic padding", "blob padding 0", "blob padding 1",
                                                        "blob padding 2", "minor version"};  // verify() looks at it
  // What nothing refers to in its blobs is padding, too. Of the version only "1." counts.
  expect_flips_show("hostile.zt", file, {},
                    std::array<std::string_view, 5>{"magic padding", "blob 0", "blob 1", "blob 2", "minor version"});
  expect_flips_show("hostile.zt", sparse_rows(numbers({1, 2}), numbers({0, 1, 2})),
                    std::array<std::string_view, 3>{"blob 0", "blob 1", "blob 2"}, kPadding);
}

}  // namespace
}  // namespace poise::hostile
