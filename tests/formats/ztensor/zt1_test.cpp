// The golden file was laid out by an independent Python script from the specification; digests are hashlib's.
#include "formats/ztensor/zt1.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/verify.hpp>

#include "formats/ztensor/zt2.hpp"
#include "formats/ztensor/zt_files.hpp"
#include "pack/digest.hpp"
#include "support/cbor_notation.hpp"
#include "support/directories.hpp"
#include "support/memory_output.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using support::array;
using support::bytes;
using support::elements;
using support::hex;
using support::map;
using support::number;
using support::padded;
using support::text;
using support::to_bytes;
using support::u64le;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a file with three tensors, in this order of bytes: "b" f32 [2] (1, -2), "a.w" u16 [2, 2] (1, 2, 3, 65535),
// "e" f32 [0, 3].
std::string golden_file() {
  std::string file = padded("ZTEN1000", 64) + hex("00 00 80 3f 00 00 00 c0");
  file = padded(file, 64) + hex("01 00 02 00 03 00 ff ff");
  file = padded(file, 64);
  const std::string manifest =
      hex("a3                          | map of 3") + hex("67 76657273696f6e           | version") +
      hex("65 312e312e30 | 1.1.0") + hex("6a 61747472696275746573     | attributes") +
      hex("a1 67 6c6963656e7365 63 4d4954 | license: MIT") + hex("67 6f626a65637473           | objects") +
      hex("a3 | by plain bytes of their names") + hex("63 612e77 a3                | a.w") +
      hex("65 7368617065 82 02 02      | shape: [2, 2]") + hex("66 666f726d6174 65 64656e7365 | format: dense") +
      hex("6a 636f6d706f6e656e7473 a1 64 64617461 a4 | components: data") +
      hex("65 6474797065 63 753136     | dtype: u16") + hex("66 6f6666736574 18 80       | offset: 128") +
      hex("66 6c656e677468 08          | length: 8") + hex("66 646967657374 78 47       | digest: 71 characters") +
      "sha256:acb5f066ec124560337221d626e280657befe117fe05b4a12ca14db1c83329ad" +
      hex("61 62 a3                    | b") +
      hex("65 7368617065 81 02 66 666f726d6174 65 64656e7365 6a 636f6d706f6e656e7473 a1 64 64617461 a4") +
      hex("65 6474797065 63 663332 66 6f6666736574 18 40 66 6c656e677468 08 66 646967657374 78 47 | f32 at 64") +
      "sha256:ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b" +
      hex("61 65 a3                    | e") +
      hex("65 7368617065 82 00 03 66 666f726d6174 65 64656e7365 6a 636f6d706f6e656e7473 a1 64 64617461 a4") +
      hex("65 6474797065 63 663332 66 6f6666736574 18 c0 66 6c656e677468 00 66 646967657374 78 47 | no bytes at 192") +
      "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  return file + manifest + u64le(manifest.size()) + "ZTEN1000";
}

std::string written(const Model& model, const WriteOptions& options = {}) {
  return poise::written(model, kZtensor1, options);
}

using Entries = std::vector<std::pair<std::string, std::string>>;

// Makes a file with these objects; its data begin at 64.
std::string file_of(const std::string& data, const std::string& objects, const std::string& version = "1.1.0") {
  const std::string manifest = map({{text("version"), text(version)}, {text("objects"), objects}});
  return padded("ZTEN1000", 64) + data + manifest + u64le(manifest.size()) + "ZTEN1000";
}

std::string component(std::string_view dtype, std::uint64_t offset, std::uint64_t length, Entries more = {}) {
  Entries entries = {{text("dtype"), text(dtype)}, {text("offset"), number(offset)}, {text("length"), number(length)}};
  entries.insert(entries.end(), more.begin(), more.end());
  return map(entries);
}

std::string object(const std::vector<std::uint64_t>& shape, std::string_view format, const Entries& components,
                   const std::string& attributes = "") {
  std::vector<std::string> dimensions;
  for (const std::uint64_t dimension : shape) dimensions.push_back(number(dimension));
  Entries entries = {{text("shape"), array(dimensions)}, {text("format"), text(format)}};
  if (!attributes.empty()) entries.emplace_back(text("attributes"), attributes);
  entries.emplace_back(text("components"), map(components));
  return map(entries);
}

std::string one_object(const std::string& object) { return map({{text("t"), object}}); }

std::string dense_file(std::string_view dtype, const std::vector<std::uint64_t>& shape, const std::string& data,
                       Entries more = {}) {
  return file_of(
      data, one_object(object(shape, "dense", {{text("data"), component(dtype, 64, data.size(), std::move(more))}})));
}

TEST(Zt1, TheGoldenFileIsReadFieldByField) {
  const std::string file = golden_file();
  ASSERT_EQ(file.size(), 707U);
  const Model model = read(file);
  EXPECT_EQ(model.origin.format, "zt-1.1");
  EXPECT_EQ(model.attributes, (Attributes{{"license", "MIT"}}));
  EXPECT_THAT(model.warnings, IsEmpty());
  ASSERT_EQ(model.size(), 3U);
  const Tensor& b = model.tensors()[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.shape, (Shape{2}));
  EXPECT_EQ(b.parts.at(0).dtype, DType::f32);
  EXPECT_EQ(read_all(*b.parts[0].blob), to_bytes(elements<float>({1, -2})));
  EXPECT_TRUE(b.parts[0].blob->map()) << "raw bytes are borrowed";
  ASSERT_TRUE(b.parts[0].digest);
  EXPECT_EQ(b.parts[0].digest->algorithm, DigestAlgorithm::sha256);
  EXPECT_TRUE(b.parts[0].digest->over_stored);
  EXPECT_EQ(b.parts[0].digest->text, "sha256:ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b");
  EXPECT_EQ(model.tensors()[1].name, "a.w");
  EXPECT_EQ(model.tensors()[1].parts.at(0).blob->stored()->offset, 128U);
  EXPECT_EQ(model.tensors()[2].name, "e");
  EXPECT_EQ(model.tensors()[2].shape, (Shape{0, 3}));
}

TEST(Zt1, WritingWhatWasReadGivesTheSameBytes) { EXPECT_EQ(written(read(golden_file())), golden_file()); }

TEST(Zt1, AnEmptyFileIs48Bytes) {
  const std::string file =
      "ZTEN1000" + hex("a2 67 76657273696f6e 65 312e312e30 67 6f626a65637473 a0") + u64le(24) + "ZTEN1000";
  EXPECT_EQ(written(Model()), file);
  EXPECT_EQ(file.size(), 48U);
  EXPECT_EQ(read(file).size(), 0U);
}

// Values from a bitwise Python CRC-32C.
TEST(Zt1, DigestsCanBeCrc32cOrLeftOut) {
  const Model model = read(golden_file());
  WriteOptions options;
  options.digest = DigestAlgorithm::crc32c;
  EXPECT_THAT(written(model, options), HasSubstr(text("digest") + text("crc32c:0xAA36F2C9")));
  options.digest = DigestAlgorithm::none;
  EXPECT_THAT(written(model, options), testing::Not(HasSubstr("digest")));
  options.digest = DigestAlgorithm::xxh3;
  EXPECT_THROW(written(model, options), Error);
}

TEST(Zt1, CompressedPartsKeepTheirContentAndDigestTheStoredBytes) {
  const Model model = read(golden_file());
  WriteOptions options;
  options.zstd_level = 3;
  const std::string file = written(model, options);
  const Model reread = read(file);
  ASSERT_EQ(reread.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Part& part = reread.tensors()[i].parts[0];
    EXPECT_EQ(read_all(*part.blob), read_all(*model.tensors()[i].parts[0].blob));
    const Stored at = *part.blob->stored();
    EXPECT_EQ(at.encoding, "zstd");
    const std::string stored = file.substr(at.offset, at.length);
    EXPECT_EQ(part.digest->text, "sha256:" + compute_sha256(to_bytes(stored)));
  }
}

TEST(Zt1, EveryElementTypeOfTheTable) {
  for (const auto& [dtype, bytes_each] : std::vector<std::pair<std::string, std::uint64_t>>{{"f64", 8},
                                                                                            {"f32", 4},
                                                                                            {"f16", 2},
                                                                                            {"bf16", 2},
                                                                                            {"f8_e4m3", 1},
                                                                                            {"f8_e5m2", 1},
                                                                                            {"complex64", 8},
                                                                                            {"complex128", 16},
                                                                                            {"i64", 8},
                                                                                            {"i32", 4},
                                                                                            {"i16", 2},
                                                                                            {"i8", 1},
                                                                                            {"u64", 8},
                                                                                            {"u32", 4},
                                                                                            {"u16", 2},
                                                                                            {"u8", 1},
                                                                                            {"bool", 1}}) {
    const std::string file = dense_file(dtype, {2, 3}, std::string(6 * bytes_each, '\1'));
    const Model model = read(file);
    EXPECT_EQ(to_string(model.tensors().at(0).parts[0].dtype), dtype);
    WriteOptions options;
    options.digest = DigestAlgorithm::none;
    EXPECT_EQ(written(model, options), file) << dtype;
    EXPECT_THAT(refusal(dense_file(dtype, {2, 3}, std::string(6 * bytes_each - 1, '\1'))), HasSubstr("needs")) << dtype;
  }
}

TEST(Zt1, FloatEightComplexAndNarrowIndicesComeWithAWarning) {
  EXPECT_THAT(losses_of(read(dense_file("f8_e4m3", {1}, "x")), kZtensor1, {}),
              testing::ElementsAre(HasSubstr("cannot read float8")));
  EXPECT_THAT(losses_of(read(dense_file("complex64", {1}, std::string(8, 'x'))), kZtensor1, {}),
              testing::ElementsAre(HasSubstr("complex")));
  EXPECT_THAT(losses_of(read(golden_file()), kZtensor1, {}), IsEmpty());
}

TEST(Zt1, UnknownPartsAreListedAndRefusedWhenLoaded) {
  const Model dtype = read(dense_file("f6_e3m2", {2}, "abc"));
  EXPECT_EQ(dtype.tensors().at(0).parts[0].dtype, DType::unknown);
  EXPECT_EQ(dtype.tensors()[0].parts[0].type_name(), "f6_e3m2");

  const Model encoding = read(dense_file("f32", {2}, "abc", {{text("encoding"), text("lz4")}}));
  try {
    read_all(*encoding.tensors().at(0).parts[0].blob);
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("\"lz4\""));
  }

  const Model layout =
      read(file_of("abcd", one_object(object({9, 9}, "block_sparse", {{text("blocks"), component("u8", 64, 4)}}))));
  EXPECT_EQ(layout.tensors().at(0).layout, Layout::other);
  EXPECT_EQ(layout.tensors()[0].layout.name(), "block_sparse");
}

// Returns one zstd frame of one raw block (RFC 8878, section 3.1.1), spelled out.
std::string zstd_frame(const std::string& content) {
  const std::size_t head = content.size() << 3 | 1;
  return hex("28 b5 2f fd 20") + static_cast<char>(content.size()) +
         std::string{static_cast<char>(head), static_cast<char>(head >> 8), '\0'} + content;
}

std::string without_digests(const Model& model) {
  WriteOptions options;
  options.digest = DigestAlgorithm::none;
  return written(model, options);
}

std::string written_as_version_2(const Model& model) { return poise::written(model, kZtensor2); }

TEST(Zt1, UnknownPartsAreHashedAndCarried) {
  const std::string type = dense_file("f6_e3m2", {2}, "abc");
  EXPECT_EQ(without_digests(read(type)), type);
  EXPECT_EQ(hash(read(type)).parts.at(0).sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
      << "FIPS 180-2's example";
  const std::string layout =
      file_of("abc", one_object(object({9, 9}, "block_sparse", {{text("blocks"), component("u8", 64, 3)}})));
  EXPECT_EQ(without_digests(read(layout)), layout);
  EXPECT_EQ(hash(read(layout)).parts.at(0).sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Zt1, UnknownPartsAreDecompressed) {
  const std::string frame = zstd_frame("abc");
  const Entries zstd = {{text("encoding"), text("zstd")}};
  const Model layout = read(file_of(
      frame, one_object(object({9, 9}, "block_sparse", {{text("blocks"), component("u8", 64, frame.size(), zstd)}}))));
  EXPECT_EQ(read_all(*layout.tensors()[0].parts[0].blob), to_bytes("abc"));
  EXPECT_EQ(hash(layout).parts.at(0).sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(read_all(*read(written(layout)).tensors()[0].parts[0].blob), to_bytes("abc"));
  const Model type = read(dense_file("f6_e3m2", {2}, frame, zstd));
  EXPECT_EQ(read_all(*read(written(type)).tensors()[0].parts[0].blob), to_bytes("abc"));
}

// Version 2 has twelve storage types. A type of version 1 that is unknown becomes a logical type over bytes, and later
// the same type again.
TEST(Zt1, UnknownPartsGoThroughVersion2AndBack) {
  const std::string type = dense_file("f6_e3m2", {2}, "abc");
  const Model second = read(written_as_version_2(read(type)));
  EXPECT_EQ(second.origin.format, "zt-v2");
  EXPECT_EQ(second.tensors()[0].parts[0].dtype, DType::unknown);
  EXPECT_EQ(second.tensors()[0].parts[0].type_name(), "u8:f6_e3m2");
  EXPECT_EQ(without_digests(second), type);
  const std::string layout =
      file_of("abc", one_object(object({9, 9}, "block_sparse", {{text("blocks"), component("u8", 64, 3)}})));
  EXPECT_EQ(without_digests(read(written_as_version_2(read(layout)))), layout);
}

// A layout that one version lacks may exist in the other version; then its rules are checked.
TEST(Zt1, NamesThatMeanSomethingElsewhereAreNotCarriedBlindly) {
  const auto refused = [](const auto& write) {
    try {
      write();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      return std::string(error.what());
    }
    return std::string();
  };
  const Model csr =
      read(file_of("abcd", one_object(object({9, 9}, "zt.sparse_csr/1", {{text("blocks"), component("u8", 64, 4)}}))));
  EXPECT_THAT(refused([&] { written_as_version_2(csr); }),
              HasSubstr("zTensor 2 cannot hold t: tensor t: sparse_csr: blocks: expected u32 or u64, found u8"));
  EXPECT_NE(without_digests(csr), "");
  Model coo;
  Tensor tensor = make_dense("t", {1}, DType::u8, make_memory_blob(to_bytes("x"), "memory"));
  tensor.layout = TensorLayout::other("sparse_coo");
  coo.add(std::move(tensor));
  EXPECT_THAT(refused([&] { written(coo); }),
              HasSubstr("zTensor 1.1 cannot hold t: tensor t: sparse_coo needs the part values"));
  Model type;
  Tensor odd = make_dense("t", {3}, DType::unknown, make_memory_blob(to_bytes("x"), "memory"));
  odd.parts[0].spelling = std::string("float7");
  type.add(std::move(odd));
  EXPECT_EQ(refused([&] { written(type); }), "");
  Model half;
  Tensor shorten_name = make_dense("t", {3}, DType::unknown, make_memory_blob(to_bytes("x"), "memory"));
  shorten_name.parts[0].spelling = std::string("f16");  // as a 1.0 file may call a type that is not known there
  half.add(std::move(shorten_name));
  EXPECT_THAT(refused([&] { written(half); }),
              HasSubstr("zTensor 1.1 cannot hold t: tensor t: shape [3] of f16 needs 6 bytes, data holds 1"));
}

// The specification names the components that a layout requires, and forbids no other.
TEST(Zt1, DenseKeepsOtherComponentsThanData) {
  const std::string objects = one_object(object({4}, "dense",
                                                {{text("data"), component("f32", 128, 16)},
                                                 {text("extra"), component("u8", 64, 3)},
                                                 {text("zz"), component("f6", 192, 2)}}));
  const std::string file = file_of(padded("abc", 64) + padded(elements<float>({1, 2, 3, 4}), 64) + "xy", objects);
  const Model model = read(file);
  const Tensor& tensor = model.tensors()[0];
  ASSERT_EQ(tensor.parts.size(), 3U);
  EXPECT_EQ(read_all(*tensor.require("extra").blob), to_bytes("abc"));
  EXPECT_EQ(tensor.layout, Layout::dense);
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_THAT(model.warnings[0].message, HasSubstr("t: dense, but with the part extra besides data, which is kept"));
  EXPECT_EQ(model.warnings[0].offset, 64U);
  EXPECT_EQ(without_digests(model), file);
  EXPECT_THAT(losses_of(model, kZtensor1, {}), IsEmpty());
  EXPECT_THAT(losses_of(model, kZtensor2, {}),
              testing::ElementsAre("tensor t: the parts extra, zz besides data are lost"));
  const Model second = read(written_as_version_2(model));
  ASSERT_EQ(second.tensors()[0].parts.size(), 1U);
  EXPECT_EQ(read_all(*second.tensors()[0].parts[0].blob), to_bytes(elements<float>({1, 2, 3, 4})));
}

TEST(Zt1, DenseKeepsAnotherCompressedComponent) {
  const std::string frame = zstd_frame("abc");
  const std::string objects =
      one_object(object({4}, "dense",
                        {{text("data"), component("u8", 128, 4)},
                         {text("extra"), component("u8", 64, frame.size(), {{text("encoding"), text("zstd")}})}}));
  const Model model = read(file_of(padded(frame, 64) + "data", objects));
  EXPECT_EQ(read_all(*model.tensors()[0].require("extra").blob), to_bytes("abc"));
  EXPECT_EQ(read_all(*read(written(model)).tensors()[0].require("extra").blob), to_bytes("abc"));
  EXPECT_THAT(refusal(file_of(padded(frame, 64) + "data",
                              one_object(object({5}, "dense",
                                                {{text("data"), component("u8", 128, 4)},
                                                 {text("extra"), component("u8", 64, frame.size())}})))),
              HasSubstr("shape [5] of u8 needs 5 bytes, data holds 4"));
}

TEST(Zt1, SparseAndQuantizedTensorsRoundTrip) {
  // [[0, 1.5, 0], [2.5, 0, 0]] with u16 indices, and as coordinates.
  const std::string values = padded(elements<float>({1.5F, 2.5F}), 64);
  const std::string indices = padded(elements<std::uint16_t>({1, 0}), 64);
  const std::string indptr = padded(elements<std::uint16_t>({0, 1, 2}), 64);
  const std::string coords = padded(elements<std::uint64_t>({0, 1, 1, 0}), 64);
  const std::string codes = padded(elements<std::int32_t>({0x76543210, 0x01234567}), 64);
  const std::string scales = padded(elements<std::uint16_t>({0x3c00, 0x4000}), 64);
  const std::string zeros = elements<std::uint16_t>({0x4800, 0});
  const std::string objects = map({
      {text("coo"), object({2, 3}, "sparse_coo",
                           {{text("coords"), component("u64", 256, 32)}, {text("values"), component("f32", 64, 8)}})},
      {text("csr"), object({2, 3}, "sparse_csr",
                           {{text("indices"), component("u16", 128, 4)},
                            {text("indptr"), component("u16", 192, 6)},
                            {text("values"), component("f32", 64, 8)}})},
      {text("q"),
       object({2, 8}, "quantized_group",
              {{text("packed_weight"), component("i32", 320, 8)},
               {text("scales"), component("f16", 384, 4)},
               {text("zeros"), component("f16", 448, 4)}},
              map({{text("bits"), number(4)}, {text("group_size"), number(8)}, {text("packing"), text("8_per_i32")}}))},
  });
  const Model model = read(file_of(values + indices + indptr + coords + codes + scales + zeros, objects));
  ASSERT_EQ(model.size(), 3U);
  EXPECT_EQ(model.find("csr")->layout, Layout::sparse_csr);
  EXPECT_EQ(model.find("coo")->layout, Layout::sparse_coo);
  EXPECT_EQ(model.find("q")->layout, Layout::quantized_group);
  const Model reread = read(written(model));
  for (const Tensor& tensor : model.tensors()) {
    const Tensor& other = *reread.find(tensor.name);
    EXPECT_EQ(other.layout, tensor.layout);
    EXPECT_EQ(other.attributes, tensor.attributes);
    for (const Part& part : tensor.parts)
      EXPECT_EQ(read_all(*other.require(part.role).blob), read_all(*part.blob)) << tensor.name << "/" << part.role;
  }
}

// [[0, 1.5, 0], [2.5, 0, 0]] with indices of each type, into both versions.
TEST(Zt1, SparseIndicesOfEveryTypeAreReadAndWritten) {
  const auto file = [](std::string_view type, const std::string& indices, const std::string& indptr) {
    return file_of(padded(elements<float>({1.5F, 2.5F}), 64) + padded(indices, 64) + indptr,
                   one_object(object({2, 3}, "sparse_csr",
                                     {{text("indices"), component(type, 128, indices.size())},
                                      {text("indptr"), component(type, 192, indptr.size())},
                                      {text("values"), component("f32", 64, 8)}})));
  };
  const auto indices_of = [&]<typename T>(std::string_view type, T) {
    return file(type, elements<T>({1, 0}), elements<T>({0, 1, 2}));
  };
  for (const std::string& bytes :
       {indices_of("u8", std::uint8_t{}), indices_of("u16", std::uint16_t{}), indices_of("u32", std::uint32_t{}),
        indices_of("u64", std::uint64_t{}), indices_of("i8", std::int8_t{}), indices_of("i16", std::int16_t{}),
        indices_of("i32", std::int32_t{}), indices_of("i64", std::int64_t{})}) {
    const Model model = read(bytes);
    const Model same = read(written(model));
    const Model newer = read(poise::written(model, kZtensor2));
    SCOPED_TRACE(model.tensors()[0].require("indices").type_name());
    EXPECT_EQ(same.tensors()[0].require("indices").dtype, model.tensors()[0].require("indices").dtype);
    for (const Model* each : {&model, &same, &newer}) {
      EXPECT_EQ(support::to_string(read_all(*make_dense_blob(each->tensors()[0], DType::f32))),
                elements<float>({0, 1.5F, 0, 2.5F, 0, 0}));
    }
  }
}

TEST(Zt1, PartsThatDoNotFitTheirLayoutAreRefused) {
  const auto csr = [](std::vector<std::uint64_t> shape, std::uint64_t values, std::uint64_t indices,
                      std::uint64_t indptr, std::string_view type = "u16") {
    return file_of(std::string(512, '\0'), one_object(object(shape, "sparse_csr",
                                                             {{text("indices"), component(type, 64, indices)},
                                                              {text("indptr"), component("u16", 128, indptr)},
                                                              {text("values"), component("f32", 192, values)}})));
  };
  EXPECT_EQ(refusal(csr({2, 3}, 8, 4, 6)), "");
  EXPECT_THAT(refusal(csr({2, 3, 1}, 8, 4, 6)), HasSubstr("rank 2"));
  EXPECT_THAT(refusal(csr({2, 3}, 8, 4, 8)), HasSubstr("indptr: expected 6 bytes, found 8"));
  EXPECT_THAT(refusal(csr({2, 3}, 12, 4, 6)), HasSubstr("values: expected 8 bytes, found 12"));
  EXPECT_THAT(refusal(csr({2, 3}, 8, 3, 6)), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal(csr({2, 3}, 8, 4, 6, "f16")), HasSubstr("expected an integer type, found f16"));
  EXPECT_THAT(refusal(csr({UINT64_MAX, 1}, 8, 4, 6)), HasSubstr("overflows"));
  EXPECT_THAT(refusal(file_of(std::string(64, '\0'),
                              one_object(object({2}, "sparse_coo", {{text("values"), component("f32", 64, 4)}})))),
              HasSubstr("needs the part coords"));

  const auto quantized = [](std::uint64_t codes, std::uint64_t scales, const Entries& attributes) {
    return file_of(std::string(512, '\0'), one_object(object({2, 8}, "quantized_group",
                                                             {{text("packed_weight"), component("i32", 64, codes)},
                                                              {text("scales"), component("f16", 128, scales)}},
                                                             map(attributes))));
  };
  const Entries good = {
      {text("bits"), number(4)}, {text("group_size"), number(8)}, {text("packing"), text("8_per_i32")}};
  EXPECT_EQ(refusal(quantized(8, 4, good)), "");
  EXPECT_THAT(refusal(quantized(12, 4, good)), HasSubstr("packed_weight: expected 2 elements of i32, found 12 bytes"));
  EXPECT_THAT(refusal(quantized(8, 8, good)), HasSubstr("scales: expected 2 elements of f16, found 8 bytes"));
  EXPECT_THAT(refusal(quantized(8, 4, {good[0], {text("group_size"), number(5)}, good[2]})),
              HasSubstr("5 does not divide the 8 codes"));
  EXPECT_THAT(refusal(quantized(8, 4, {good[0], {text("group_size"), number(0)}, good[2]})), HasSubstr("group_size"));
  EXPECT_THAT(refusal(quantized(8, 4, {{text("bits"), number(9)}, good[1], good[2]})), HasSubstr("9 is too large"));
  EXPECT_THAT(refusal(quantized(8, 4, {good[0], good[1], {text("packing"), text("9_per_i32")}})),
              HasSubstr("do not fit"));
  EXPECT_THAT(refusal(quantized(8, 4, {good[0], good[1], {text("packing"), text("eight")}})), HasSubstr("8_per_i32"));
  EXPECT_THAT(refusal(quantized(8, 4, {good[0], good[1]})), HasSubstr("packing"));
}

TEST(Zt1, MisplacedComponentsAreRefused) {
  const auto at = [](std::uint64_t offset, std::uint64_t length) {
    return file_of(std::string(128, '\0'),
                   one_object(object({length}, "dense", {{text("data"), component("u8", offset, length)}})));
  };
  EXPECT_EQ(refusal(at(64, 128)), "");
  EXPECT_EQ(refusal(at(192, 0)), "");
  EXPECT_THAT(refusal(at(65, 8)), HasSubstr("offset: 65 is not a multiple of 64"));
  EXPECT_THAT(refusal(at(0, 8)), HasSubstr("offset: 0 is before the first place, 64"));
  EXPECT_THAT(refusal(at(64, 129)), HasSubstr("reach beyond the data, which end at 192"));
  EXPECT_THAT(refusal(at(128, UINT64_MAX)), HasSubstr("reach beyond the data"));
  EXPECT_THAT(refusal(at(UINT64_MAX - 63, 64)), HasSubstr("reach beyond the data"));
  const auto two = [](std::uint64_t first, std::uint64_t first_length, std::uint64_t second,
                      std::uint64_t second_length) {
    return file_of(
        std::string(256, '\0'),
        map({{text("a"), object({first_length}, "dense", {{text("data"), component("u8", first, first_length)}})},
             {text("b"), object({second_length}, "dense", {{text("data"), component("i8", second, second_length)}})}}));
  };
  EXPECT_EQ(refusal(two(64, 64, 128, 64)), "");
  EXPECT_EQ(refusal(two(64, 100, 64, 100)), "") << "identical ranges are shared";
  EXPECT_THAT(refusal(two(64, 65, 128, 64)), HasSubstr("overlap those of a: data at 64"));
  EXPECT_THAT(refusal(two(64, 100, 64, 99)), HasSubstr("overlap"));
  EXPECT_THAT(refusal(two(128, 8, 64, 128)), HasSubstr("overlap"));
}

TEST(Zt1, BrokenManifestsAreRefused) {
  const auto with = [](const std::string& manifest) {
    return padded("ZTEN1000", 64) + manifest + u64le(manifest.size()) + "ZTEN1000";
  };
  EXPECT_THAT(refusal(with(map({{text("objects"), map({})}}))), HasSubstr("\"version\" is missing"));
  EXPECT_THAT(refusal(with(map({{text("version"), text("1.1.0")}}))), HasSubstr("\"objects\" is missing"));
  EXPECT_THAT(refusal(with(map({{text("version"), text("2.0")}, {text("objects"), map({})}}))),
              HasSubstr("expected 1.x, found \"2.0\""));
  EXPECT_THAT(refusal(with(map({{text("version"), number(1)}, {text("objects"), map({})}}))),
              HasSubstr("version: expected text, found an unsigned integer"));
  EXPECT_THAT(refusal(with(map({{text("version"), text("1.1.0")}, {text("objects"), map({})}}) + "x")),
              HasSubstr("1 bytes after the end"));
  EXPECT_THAT(refusal(with(array({}))), HasSubstr("expected a map, found an array"));
  EXPECT_THAT(refusal(file_of("", map({{text("a"), object({0}, "dense", {{text("data"), component("u8", 64, 0)}})},
                                       {text("a"), object({0}, "dense", {{text("data"), component("u8", 64, 0)}})}}))),
              HasSubstr("the tensor name \"a\" appears twice"));
  EXPECT_THAT(refusal(file_of("", one_object(map({{text("format"), text("dense")}, {text("components"), map({})}})))),
              HasSubstr("manifest: objects: t: \"shape\" is missing"));
  EXPECT_THAT(
      refusal(file_of("", one_object(object({0}, "dense", {{text("data"), map({{text("dtype"), text("u8")}})}})))),
      HasSubstr("components: data: \"offset\" is missing"));
  EXPECT_THAT(refusal(file_of("", one_object(object({0}, "dense", {})))), HasSubstr("dense needs the component data"));
  EXPECT_THAT(
      refusal(file_of("", one_object(object({UINT64_MAX, 2}, "dense", {{text("data"), component("u8", 64, 0)}})))),
      HasSubstr("overflows"));
  EXPECT_THAT(refusal("ZTEN1000" + std::string(100, '\0')), HasSubstr("footer magic"));
  EXPECT_THAT(refusal("ZTEN1000"), HasSubstr("footer magic"));
  EXPECT_THAT(refusal("ZTEN1000ZTEN1000"), HasSubstr("the file is cut off: it needs at least 25 bytes, has 16"));
  const std::string manifest = map({{text("version"), text("1.1.0")}, {text("objects"), map({})}});
  EXPECT_THAT(refusal("ZTEN1000" + manifest + u64le(manifest.size() + 1) + "ZTEN1000"), HasSubstr("manifest size"));
  EXPECT_THAT(refusal("ZTEN1000" + manifest + u64le(UINT64_MAX) + "ZTEN1000"),
              HasSubstr("at most 1073741824 are allowed"));
}

// The specification has "ZTEN1000" at both ends: where the first is damaged, the last identifies the version.
TEST(Zt1, ADamagedHeaderIsOneOfTheVersionThatTheFooterNames) {
  const std::string manifest = map({{text("version"), text("1.1.0")}, {text("objects"), map({})}});
  const std::string rest = "TEN1000" + manifest + u64le(manifest.size());
  EXPECT_THAT(refusal("z" + rest + "ZTEN1000"),
              HasSubstr("zt 1.x: header magic: expected \"ZTEN1000\", found \"zTEN1000\""));
  EXPECT_THAT(refusal("z" + rest), HasSubstr("zt 1.x: header magic"));  // 1.0 ends with the size
  EXPECT_THAT(refusal("z" + rest + "zTEN1000"), HasSubstr("zt 2: header magic"));
  EXPECT_THAT(refusal("zTEN1000"), HasSubstr("zt 2: file size"));
}

TEST(Zt1, LenientEncodingsAreRead) {
  const std::string object = hex("bf") + text("components") + hex("bf") + text("data") +
                             map({{text("length"), hex("1b 00 00 00 00 00 00 00 02")},
                                  {text("offset"), number(64)},
                                  {text("dtype"), hex("7f 61 75 61 38 ff")}}) +
                             hex("ff") + text("format") + text("dense") + text("shape") + hex("9f 02 ff ff");
  const Model model = read(file_of("hi", one_object(object)));
  EXPECT_EQ(model.tensors().at(0).parts[0].dtype, DType::u8);
  EXPECT_EQ(model.tensors()[0].shape, (Shape{2}));
}

// Readers ignore tags, and undefined is null, which marks an optional value that is missing.
TEST(Zt1, OptionalValuesMayBeNullOrUndefined) {
  for (const std::string& null : {hex("f6"), hex("f7"), hex("c1 f6"), hex("c1 d8 20 f7")}) {
    const Model model = read(file_of(
        "hi",
        one_object(object({2}, "dense",
                          {{text("data"), component("u8", 64, 2, {{text("digest"), null}, {text("encoding"), null}})}},
                          null))));
    EXPECT_EQ(model.tensors().at(0).parts[0].digest, std::nullopt);
    EXPECT_TRUE(model.tensors()[0].attributes.empty());
  }
}

// A compressed component does not show its size. Each that cannot be decoded is a fault of its own tensor.
TEST(Zt1, VerifyNamesEveryComponentThatCannotBeDecoded) {
  const support::TemporaryDirectory directory;
  const Entries damaged = {{text("encoding"), text("zstd")}};
  const auto sparse = [&](std::uint64_t offset) {
    return object({2}, "sparse_coo",
                  {{text("coords"), component("u64", offset, 3, damaged)}, {text("values"), component("f32", 192, 4)}});
  };
  std::string data = padded("bad", 64) + padded("bad", 64);
  support::put(directory / "x.zt",
               file_of(data + elements<float>({1}), map({{text("a"), sparse(64)}, {text("b"), sparse(128)}})));
  const VerifyReport report = verify(directory / "x.zt");
  EXPECT_EQ(report.tensors, 2U);
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("tensor a: coords: zstd: "));
  EXPECT_EQ(report.faults[0].offset, 64U);
  EXPECT_THAT(report.faults[1].message, HasSubstr("tensor b: coords: zstd: "));
}

TEST(Zt1, EveryTruncationIsRefused) {
  const std::string file = golden_file();
  for (std::size_t length = 0; length < file.size(); ++length) EXPECT_NE(refusal(file.substr(0, length)), "") << length;
}

TEST(Zt1, AFlippedBitIsRefusedOrChangesOneThing) {
  const std::string file = golden_file();
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    try {
      const Model model = read(flipped);
      for (const Tensor& tensor : model.tensors()) {
        for (const Part& part : tensor.parts) read_all(*part.blob);
      }
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << bit << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace poise
