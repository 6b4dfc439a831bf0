// Files of zTensor 0.1, 1.0 and 1.2, laid out by hand from their specifications.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/edit.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "formats/format.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "formats/ztensor/zt_files.hpp"
#include "support/cbor_notation.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using support::array;
using support::elements;
using support::hex;
using support::map;
using support::number;
using support::padded;
using support::text;
using support::to_bytes;
using support::u64le;
using testing::HasSubstr;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string entry_0_1(Entries more = {}) {
  Entries entries = {{text("name"), text("w")},           {text("offset"), number(64)},
                     {text("size"), number(8)},           {text("dtype"), text("float32")},
                     {text("shape"), array({number(2)})}, {text("encoding"), text("raw")}};
  entries.insert(entries.end(), more.begin(), more.end());
  return map(entries);
}

std::string file_0_1(const std::string& data, const std::vector<std::string>& entries) {
  const std::string index = array(entries);
  return padded("ZTEN0001", 64) + data + index + u64le(index.size());
}

TEST(Zt0, TheGoldenFileIsRead) {
  const std::string file =
      padded("ZTEN0001", 64) + hex("00 00 80 3f 00 00 00 c0 | 1.0, -2.0") +
      hex("81 a7                       | one tensor of seven fields") + hex("64 6e616d65 61 77           | name: w") +
      hex("66 6f6666736574 18 40       | offset: 64") + hex("64 73697a65 08              | size: 8") +
      hex("65 6474797065 67 666c6f61743332 | dtype: float32") + hex("65 7368617065 81 02         | shape: [2]") +
      hex("68 656e636f64696e67 63 726177 | encoding: raw") + hex("66 6c61796f7574 65 64656e7365 | layout: dense") +
      hex("48 00 00 00 00 00 00 00     | 72 bytes of index");
  const Model model = read(file);
  EXPECT_EQ(model.origin.format, "zt-0.1");
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.tensors()[0].parts.at(0).dtype, DType::f32);
  EXPECT_EQ(read_all(*model.tensors()[0].parts[0].blob), to_bytes(elements<float>({1, -2})));
  for (std::size_t length = 0; length < file.size(); ++length) EXPECT_NE(refusal(file.substr(0, length)), "") << length;
}

// The specification's example of a file without tensors: 17 bytes.
TEST(Zt0, TheEmptyFileHas17Bytes) { EXPECT_EQ(read("ZTEN0001" + hex("80 01 00 00 00 00 00 00 00")).size(), 0U); }

TEST(Zt0, CannotBeEdited) {
  const support::TemporaryDirectory directory;
  support::put(directory / "x.zt", file_0_1(hex("00 00 80 3f 00 00 00 c0"), {entry_0_1()}));
  EXPECT_THAT(support::message_of([&] {
                edit(directory / "x.zt", {.set = {{"note", "x"}}});
              }),
              HasSubstr("can be read, but not edited"));
}

TEST(Zt0, BigEndianElementsAreSwapped) {
  const std::string file =
      file_0_1(hex("3f 80 00 00 c0 00 00 00"), {entry_0_1({{text("data_endianness"), text("big")}})});
  const Model model = read(file);
  const Blob& blob = *model.tensors().at(0).parts[0].blob;
  EXPECT_EQ(read_all(blob), to_bytes(elements<float>({1, -2})));
  std::vector<std::byte> piece(3);
  blob.read(3, piece);
  EXPECT_EQ(piece, to_bytes(hex("3f 00 00")));
  EXPECT_NE(blob.stored()->encoding, "raw") << "nobody may copy the stored bytes";
  EXPECT_EQ(blob.stored_byte(4)->offset, 64U + 4);
}

// Without the width of its numbers, Poise cannot swap a tensor's bytes: it keeps them, and says which order they have.
TEST(Zt0, BigEndianBytesThatAreNotKnownToBeNumbersAreKept) {
  const std::string data = hex("01 02 03 04 05 06 07 08 09 0a 0b 0c 0d");
  const std::string file = padded("ZTEN0001", 64) + data;
  const auto with = [&](std::string_view dtype, std::string_view layout) {
    const std::string index = array({map({{text("name"), text("w")},
                                          {text("offset"), number(64)},
                                          {text("size"), number(13)},
                                          {text("dtype"), text(dtype)},
                                          {text("shape"), array({number(2)})},
                                          {text("encoding"), text("raw")},
                                          {text("layout"), text(layout)},
                                          {text("data_endianness"), text("big")}})});
    return file + index + u64le(index.size());
  };
  for (const auto& [dtype, layout] : {std::pair{"float32", "sparsecsr"}, {"float52", "dense"}}) {
    for (const Format* format : {&kZtensor1, &kZtensor2}) {
      const Model model = read(written(read(with(dtype, layout)), *format));
      EXPECT_EQ(read_all(*model.tensors().at(0).parts[0].blob), to_bytes(data)) << layout;
      EXPECT_EQ(model.tensors()[0].attributes, (Attributes{{"data_endianness", "big"}})) << layout;
    }
  }
}

TEST(Zt0, OptionalFieldsAndCustomOnesAreKept) {
  const Model model =
      read(file_0_1(std::string(8, '\0'),
                    {entry_0_1({{text("checksum"), text("crc32c:0x00000000")}, {text("note"), text("hello")}})}));
  EXPECT_EQ(model.tensors().at(0).attributes, (Attributes{{"note", "hello"}}));
  EXPECT_EQ(model.tensors()[0].parts[0].digest->algorithm, DigestAlgorithm::crc32c);
}

TEST(Zt0, SparseTensorsAreListedOnly) {
  const Model model = read(file_0_1(std::string(8, '\0'), {entry_0_1({{text("layout"), text("sparsecsr")}})}));
  EXPECT_EQ(model.tensors().at(0).layout, Layout::other);
  EXPECT_EQ(model.tensors()[0].layout.name(), "sparsecsr");
}

TEST(Zt0, BrokenFilesAreRefused) {
  EXPECT_THAT(refusal(file_0_1(std::string(8, '\0'), {entry_0_1(), entry_0_1()})), HasSubstr("appears twice"));
  EXPECT_THAT(refusal(file_0_1(std::string(7, '\0'), {entry_0_1()})), HasSubstr("reach beyond the data"));
  EXPECT_THAT(refusal(file_0_1(std::string(8, '\0'), {map({{text("name"), text("w")}})})),
              HasSubstr("\"offset\" is missing"));
  EXPECT_THAT(refusal(file_0_1(std::string(8, '\0'), {entry_0_1({{text("data_endianness"), text("middle")}})})),
              HasSubstr("little or big"));
  EXPECT_THAT(refusal("ZTEN0001" + hex("80") + u64le(2)), HasSubstr("index size"));
}

std::string file_1_0(const std::string& dtype, const std::string& layout, const Entries& components, bool magic) {
  const std::string manifest =
      map({{text("version"), text("1.0")},
           {text("generator"), text("test")},
           {text("attributes"), map({{text("license"), text("MIT")}})},
           {text("tensors"), map({{text("w"), map({{text("dtype"), text(dtype)},
                                                   {text("shape"), array({number(1), number(2)})},
                                                   {text("format"), text(layout)},
                                                   {text("components"), map(components)}})}})}});
  return padded("ZTEN1000", 64) + padded(elements<float>({1, -2}), 64) + padded(elements<std::uint64_t>({0, 1}), 64) +
         elements<std::uint64_t>({0, 2}) + manifest + u64le(manifest.size()) + (magic ? "ZTEN1000" : "");
}

std::string place(const std::string& size_key, std::uint64_t offset, std::uint64_t length) {
  return map({{text("offset"), number(offset)}, {text(size_key), number(length)}});
}

TEST(Zt1Older, Version1Point0IsReadWithAndWithoutMagicAtTheEnd) {
  for (const std::string size_key : {"size", "length"}) {
    for (const bool magic : {false, true}) {
      const Model model = read(file_1_0("float32", "dense", {{text("data"), place(size_key, 64, 8)}}, magic));
      EXPECT_EQ(model.origin.format, "zt-1.0");
      EXPECT_EQ(model.attributes, (Attributes{{"license", "MIT"}, {"generator", "test"}}));
      EXPECT_EQ(model.tensors().at(0).parts[0].dtype, DType::f32);
      EXPECT_EQ(read_all(*model.tensors()[0].parts[0].blob), to_bytes(elements<float>({1, -2})));
    }
  }
}

TEST(Zt1Older, Version1Point0IndicesAreUnsigned64) {
  const Model model = read(file_1_0("float32", "sparse_csr",
                                    {{text("values"), place("size", 64, 8)},
                                     {text("indices"), place("size", 128, 16)},
                                     {text("indptr"), place("size", 192, 16)}},
                                    false));
  const Tensor& tensor = model.tensors().at(0);
  EXPECT_EQ(tensor.layout, Layout::sparse_csr);
  EXPECT_EQ(tensor.require("indptr").dtype, DType::u64);
  EXPECT_EQ(tensor.require("values").dtype, DType::f32);
}

TEST(Zt1Older, EveryTruncationOf1Point0IsRefused) {
  const std::string file = file_1_0("float32", "dense", {{text("data"), place("size", 64, 8)}}, false);
  for (std::size_t length = 0; length < file.size(); ++length) EXPECT_NE(refusal(file.substr(0, length)), "") << length;
}

std::string file_1_2(const std::string& attributes, const std::string& data, const std::string& component) {
  const std::string manifest =
      map({{text("version"), text("1.2.0")},
           {text("attributes"), attributes},
           {text("objects"), map({{text("w"), map({{text("shape"), array({number(2)})},
                                                   {text("format"), text("dense")},
                                                   {text("components"), map({{text("data"), component}})}})}})}});
  return padded("ZTEN1000", 64) + data + manifest + u64le(manifest.size()) + "ZTEN1000";
}

std::string component_1_2(const Entries& before, std::uint64_t length, const Entries& behind = {}) {
  Entries entries = before;
  entries.insert(entries.end(), {{text("offset"), number(64)}, {text("length"), number(length)}});
  entries.insert(entries.end(), behind.begin(), behind.end());
  return map(entries);
}

TEST(Zt1Older, Version1Point2HasAnyAttributesAndLogicalTypes) {
  const std::string attributes = map({{text("epoch"), number(3)}, {text("tags"), array({text("a")})}});
  const Model complex =
      read(file_1_2(attributes, std::string(16, '\1'),
                    component_1_2({{text("dtype"), text("f32")}, {text("type"), text("complex64")}}, 16)));
  EXPECT_EQ(complex.origin.format, "zt-1.2");
  EXPECT_EQ(complex.attributes, (Attributes{{"epoch", 3}, {"tags", Value::Array{"a"}}}));
  EXPECT_EQ(complex.tensors().at(0).parts[0].dtype, DType::complex64);
  const Model small =
      read(file_1_2(map({}), "ab", component_1_2({{text("dtype"), text("u8")}, {text("type"), text("f8_e4m3fn")}}, 2)));
  EXPECT_EQ(small.tensors().at(0).parts[0].dtype, DType::f8_e4m3);
  const Model strange =
      read(file_1_2(map({}), "ab", component_1_2({{text("dtype"), text("u8")}, {text("type"), text("f6")}}, 2)));
  EXPECT_EQ(strange.tensors().at(0).parts[0].dtype, DType::unknown);
  EXPECT_EQ(strange.tensors()[0].parts[0].type_name(), "u8:f6");
}

// The frame was made by `zstd --no-check` 1.5.4 from 8 bytes.
TEST(Zt1Older, Version1Point2HasTheUncompressedLength) {
  const std::string frame = hex("28 b5 2f fd 00 58 41 00 00 00 00 80 3f 00 00 00 c0");
  const auto file = [&](std::uint64_t size) {
    return file_1_2(map({}), frame,
                    component_1_2({{text("dtype"), text("f32")}}, frame.size(),
                                  {{text("uncompressed_length"), number(size)},
                                   {text("encoding"), text("zstd")},
                                   {text("digest"), hex("f6")}}));
  };
  const Model model = read(file(8));
  EXPECT_EQ(read_all(*model.tensors().at(0).parts[0].blob), to_bytes(elements<float>({1, -2})));
  EXPECT_FALSE(model.tensors()[0].parts[0].digest);
  EXPECT_THAT(refusal(file(9)), HasSubstr("needs 8 bytes, data holds 9"));
}

// Every older file converts to a current one.
TEST(Zt1Older, OlderFilesAreWrittenAsVersion1Point1) {
  const Model old =
      read(file_0_1(hex("3f 80 00 00 c0 00 00 00"), {entry_0_1({{text("data_endianness"), text("big")}})}));
  const Model current = read(written(old, kZtensor1));
  EXPECT_EQ(current.origin.format, "zt-1.1");
  EXPECT_EQ(read_all(*current.tensors().at(0).parts[0].blob), to_bytes(elements<float>({1, -2})));
}

// Writers of both versions refuse tensors that a reader would refuse.
TEST(Ztensor, ScalesThatAreNotNumbersAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Affine affine : {Affine{.delta = nan}, Affine{.delta = -1}, Affine{.delta = 1, .min = -infinity, .max = 1},
                              Affine{.delta = 1, .max = infinity}, Affine{.delta = 1, .min = 1, .max = -1}}) {
    Model model;
    Tensor tensor = make_dense("q", {2}, DType::qint8, make_memory_blob(std::vector<std::byte>(2), "q"));
    tensor.layout = make_affine(affine);
    model.add(std::move(tensor));
    for (const Format* format : {&kZtensor1, &kZtensor2}) {
      EXPECT_THAT(support::message_of([&] { written(model, *format); }),
                  HasSubstr("tensor q: attribute poise.affine: "))
          << affine.delta;
    }
  }
}

// Nor do readers accept a number that float32 does not hold.
TEST(Ztensor, ScalesBeyondFloat32AreRefused) {
  for (const auto& [delta, found] : {std::pair{1e300, "1e+300"},
                                     {std::numeric_limits<double>::quiet_NaN(), "nan"},
                                     {-std::numeric_limits<double>::infinity(), "-inf"}}) {
    Model model;
    Tensor tensor = make_dense("q", {2}, DType::i8, make_memory_blob(std::vector<std::byte>(2), "q"));
    tensor.attributes.set("poise.affine",
                          Attributes{{"bits", std::uint64_t{8}}, {"delta", delta}, {"min", 0.0}, {"max", 1.0}});
    model.add(std::move(tensor));
    for (const Format* format : {&kZtensor1, &kZtensor2}) {
      EXPECT_THAT(support::message_of([&] { read(written(model, *format)); }),
                  HasSubstr(fmt::format("delta: expected a finite number of float32, found {}", found)));
    }
  }
}

// Tags, long heads and payloads of NaN: an edit keeps the bytes of everything else.
TEST(Zt1Older, AnEditKeepsAllOtherBytes) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("poise-edit-1.2-{}.zt", ::getpid());
  const std::string date = hex("c0 6a") + "2026-11-22";
  const std::string number5 = support::long_head(0, 5, 8);
  const auto file = [&](const Entries& attributes) {
    const std::string manifest = map({{text("attributes"), map(attributes)},
                                      {text("later"), hex("bf ff")},
                                      {text("objects"), map({})},
                                      {text("version"), text("1.2.0")}});
    return padded("ZTEN1000", 64) + manifest + u64le(manifest.size()) + "ZTEN1000";
  };
  std::ofstream(path) << file(
      {{text("date"), date}, {text("gone"), number(1)}, {text("nan"), hex("f9 7e 01")}, {text("number"), number5}});
  AttributeChanges changes;
  changes.set = {{"note", "x"}};
  changes.erase = {"gone"};
  edit(path, changes);
  std::ostringstream edited;
  edited << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_EQ(to_bytes(edited.str()), to_bytes(file({{text("date"), date},
                                                   {text("nan"), hex("f9 7e 01")},
                                                   {text("note"), text("x")},
                                                   {text("number"), number5}})));
}

}  // namespace
}  // namespace poise
