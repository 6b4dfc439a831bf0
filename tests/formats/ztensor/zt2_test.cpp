// The golden file was laid out by an independent Python script from the format's rules; its digests are xxhsum's and
// hashlib's.
#include "formats/ztensor/zt2.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <tuple>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/verify.hpp>

#include "formats/safetensors/safetensors.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2_file.hpp"
#include "formats/ztensor/zt_files.hpp"
#include "pack/digest.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/hostile_cases.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

using namespace support;
using testing::HasSubstr;
using testing::IsEmpty;

std::string written(const Model& model, const WriteOptions& options = {}) {
  return poise::written(model, kZtensor2, options);
}

Tensor dense(std::string name, Shape shape, DType dtype, const std::string& data) {
  return make_dense(std::move(name), std::move(shape), dtype, make_memory_blob(to_bytes(data), "memory"));
}

std::string bytes_of(const Model& model, std::string_view tensor, std::string_view role = "data") {
  return support::to_string(read_all(*model.find(tensor)->require(role).blob));
}

// Returns a model with five tensors, "b" and "copy.of.b" with the same bytes: a.w u16 [2, 2], b f32 [2], c bool [8],
// copy.of.b f32 [2, 1], e f32 [0, 3].
Model golden_model() {
  Model model;
  model.attributes = {{"license", "MIT"}, {"epoch", 3}};
  model.add(dense("e", {0, 3}, DType::f32, ""));
  model.add(dense("copy.of.b", {2, 1}, DType::f32, elements<float>({1, -2})));
  model.add(dense("b", {2}, DType::f32, elements<float>({1, -2})));
  model.add(dense("a.w", {2, 2}, DType::u16, elements<std::uint16_t>({1, 2, 3, 65535})));
  model.add(dense("c", {8}, DType::boolean, hex("01 00 00 01 01 00 01 00")));
  return model;
}

std::string golden_file() {
  const auto data = [](std::string_view dtype, std::uint64_t offset, std::uint64_t length, std::string_view digest,
                       Entries more = {}) {
    more.emplace_back(text("digest"), text(digest));
    return Entries{{text("data"), part(dtype, offset, length, more)}};
  };
  File2 file;
  file.blobs = {{65536, hex("01 00 02 00 03 00 ff ff")},
                {131072, hex("00 00 80 3f 00 00 00 c0")},
                {196608, hex("01 00 00 01 01 00 01 00")}};
  file.manifest_offset = 262144;
  file.manifest =
      manifest({{text("b"), object({2}, "dense", data("f32", 131072, 8, "xxh3:28a0ba9c345d3723"))},
                {text("c"),
                 object({8}, "dense", data("u8", 196608, 8, "xxh3:716d7f42253a2042", {{text("type"), text("bool")}}))},
                {text("e"), object({0, 3}, "dense", data("f32", 262144, 0, "xxh3:2d06800538d394c2"))},
                {text("a.w"), object({2, 2}, "dense", data("u16", 65536, 8, "xxh3:65d7497036ad434c"))},
                {text("copy.of.b"), object({2, 1}, "dense", data("f32", 131072, 8, "xxh3:28a0ba9c345d3723"))}},
               {{text("attributes"), sorted({{text("license"), text("MIT")}, {text("epoch"), number(3)}})}});
  return file.bytes();
}

// Returns other bytes at every read, like a file that another program is writing.
class ChangingBlob final : public Blob {
 public:
  std::uint64_t size() const override { return 1 << 20; }
  void read(std::uint64_t, std::span<std::byte> out) const override {
    std::ranges::fill(out, static_cast<std::byte>(++reads_));
  }

 private:
  mutable std::atomic<unsigned> reads_ = 0;
};

const hostile::HostileTable kTable("zt", [] { return golden_file(); });

TEST(Zt2, DigestsAreThoseOfTheBytesWrittenEvenWhereTheInputChanges) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("poise-changing-{}", ::getpid());
  Model model;
  for (const char* name : {"a", "b", "c", "d"})
    model.add(make_dense(name, {1 << 20}, DType::u8, std::make_shared<ChangingBlob>()));
  WriteOptions options;
  options.overwrite = true;
  for (const auto& [format, digest, level] : {std::tuple{"zt", DigestAlgorithm::sha256, 0},
                                              {"zt", DigestAlgorithm::xxh3, 0},
                                              {"zt", DigestAlgorithm::sha256, 3},
                                              {"zt1", DigestAlgorithm::sha256, 0},
                                              {"zt1", DigestAlgorithm::crc32c, 0},
                                              {"zt1", DigestAlgorithm::sha256, 3}}) {
    options.digest = digest;
    options.zstd_level = level == 0 ? std::nullopt : std::optional(level);
    save(model, path, format, options);
    const VerifyReport report = verify(path);
    EXPECT_EQ(report.digests, 4U) << format;
    EXPECT_EQ(report.errors(), 0U) << format << " " << level;
  }
  std::filesystem::remove(path);
}

TEST(Zt2, TheGoldenFileIsWhatThePythonScriptMade) {
  EXPECT_EQ(golden_file().size(), 262687U);
  EXPECT_EQ(compute_sha256(to_bytes(golden_file())),
            "cfabd8876a0f2709daf9ff196da8393251264cbd4c9e16940c9eda12af2ed0a1");
}

TEST(Zt2, TheGoldenFileIsReadFieldByField) {
  const Model model = read(golden_file());
  EXPECT_EQ(model.origin.format, "zt-v2");
  EXPECT_EQ(model.attributes, (Attributes{{"epoch", 3}, {"license", "MIT"}}));
  EXPECT_THAT(model.warnings, IsEmpty());
  ASSERT_EQ(model.size(), 5U);
  EXPECT_EQ(model.tensors()[0].name, "a.w");
  EXPECT_EQ(model.tensors()[1].name, "b");
  EXPECT_EQ(model.tensors()[2].name, "copy.of.b");
  EXPECT_EQ(model.tensors()[3].name, "c");
  EXPECT_EQ(model.tensors()[4].name, "e");
  EXPECT_EQ(model.find("c")->parts.at(0).dtype, DType::boolean);
  EXPECT_EQ(bytes_of(model, "b"), elements<float>({1, -2}));
  EXPECT_TRUE(model.find("b")->parts[0].blob->map()) << "raw bytes are borrowed";
  EXPECT_EQ(model.find("b")->parts[0].digest->algorithm, DigestAlgorithm::xxh3);
  EXPECT_FALSE(model.find("b")->parts[0].digest->over_stored);
  EXPECT_EQ(model.find("copy.of.b")->parts[0].blob->stored()->offset, 131072U);
}

TEST(Zt2, TheCanonicalFormIsWritten) { EXPECT_EQ(written(golden_model()), golden_file()); }

TEST(Zt2, TheSameTensorsGiveTheSameFileInAnyOrder) {
  const Model model = golden_model();
  Model reversed;
  reversed.attributes = {{"epoch", 3}, {"license", "MIT"}};
  for (std::size_t i = model.size(); i-- > 0;) reversed.add(model.tensors()[i]);
  EXPECT_EQ(written(reversed), golden_file());
  EXPECT_EQ(written(read(golden_file())), golden_file());
}

TEST(Zt2, AFileWithoutTensorsIsTheManifestAlone) {
  File2 file;
  file.manifest = manifest({});
  EXPECT_EQ(written(Model()), file.bytes());
  EXPECT_EQ(read(file.bytes()).size(), 0U);
}

TEST(Zt2, EveryElementTypeRoundTrips) {
  for (const auto& [dtype, storage, type, bits] : std::vector<std::tuple<DType, std::string, std::string, unsigned>>{
           {DType::f64, "f64", "", 64},
           {DType::f32, "f32", "", 32},
           {DType::f16, "f16", "", 16},
           {DType::bf16, "bf16", "", 16},
           {DType::i64, "i64", "", 64},
           {DType::i32, "i32", "", 32},
           {DType::i16, "i16", "", 16},
           {DType::i8, "i8", "", 8},
           {DType::u64, "u64", "", 64},
           {DType::u32, "u32", "", 32},
           {DType::u16, "u16", "", 16},
           {DType::u8, "u8", "", 8},
           {DType::boolean, "u8", "bool", 8},
           {DType::f8_e4m3, "u8", "f8_e4m3fn", 8},
           {DType::f8_e5m2, "u8", "f8_e5m2", 8},
           {DType::f8_e4m3fnuz, "u8", "f8_e4m3fnuz", 8},
           {DType::f8_e5m2fnuz, "u8", "f8_e5m2fnuz", 8},
           {DType::f8_e8m0, "u8", "f8_e8m0", 8},
           {DType::f4_e2m1, "u8", "f4_e2m1", 4},
           {DType::complex64, "f32", "complex64", 64},
           {DType::complex128, "f64", "complex128", 128}}) {
    const std::string data((5 * bits + 7) / 8, '\1');
    Model model;
    model.add(dense("t", {5}, dtype, data));
    const std::string file = written(model);
    EXPECT_THAT(file, HasSubstr(text("dtype") + text(storage))) << type;
    if (!type.empty()) {
      EXPECT_THAT(file, HasSubstr(text("type") + text(type)));
    }
    const Model reread = read(file);
    EXPECT_EQ(reread.find("t")->parts.at(0).dtype, dtype);
    EXPECT_EQ(bytes_of(reread, "t"), data);
  }
}

TEST(Zt2, AlignmentCanBeChosen) {
  WriteOptions options;
  options.align = 4096;
  const std::string file = written(golden_model(), options);
  const Model model = read(file);
  EXPECT_EQ(model.find("a.w")->parts[0].blob->stored()->offset, 4096U);
  EXPECT_EQ(model.find("b")->parts[0].blob->stored()->offset, 8192U);
  EXPECT_EQ(file.size() / 4096, 4U);
  for (const std::uint64_t wrong : {0U, 1U, 64U, 2048U, 12288U}) {
    options.align = wrong;
    EXPECT_THROW(written(golden_model(), options), Error) << wrong;
  }
}

TEST(Zt2, DigestsCanBeSha256OrLeftOut) {
  WriteOptions options;
  options.digest = DigestAlgorithm::sha256;
  // The digest is hashlib's, of the two floats.
  EXPECT_THAT(written(golden_model(), options),
              HasSubstr(text("sha256:ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b")));
  options.digest = DigestAlgorithm::none;
  EXPECT_THAT(written(golden_model(), options), testing::Not(HasSubstr("digest")));
  options.digest = DigestAlgorithm::crc32c;
  EXPECT_THROW(written(golden_model(), options), Error);
}

TEST(Zt2, TheContentDigestIgnoresDigestsOfOtherAlgorithms) {
  Model model = golden_model();
  const std::string expected = ztensor::compute_content_digest2(model);
  Model other;
  for (Tensor tensor : model.tensors()) {
    tensor.parts[0].digest = Digest{DigestAlgorithm::unknown, "md5:abc"};
    other.add(std::move(tensor));
  }
  EXPECT_EQ(ztensor::compute_content_digest2(other), expected);
}

// The content digest has the digests of the manifest, also for u64 indices, which need no conversion.
TEST(Zt2, TheContentDigestHasTheDigestsOfIndices) {
  File2 file;
  file.blobs = {{65536, elements<std::uint64_t>({0, 2})}, {131072, elements<float>({1, 2})}};
  file.manifest_offset = 196608;
  const auto with = [&](const std::string& indices) {
    const std::string values = text("sha256:" + std::string(64, '1'));
    file.manifest =
        manifest({{text("c"), object({3}, "zt.sparse_coo/1",
                                     {{text("coords"), part("u64", 65536, 16, {{text("digest"), indices}})},
                                      {text("values"), part("f32", 131072, 8, {{text("digest"), values}})}})}});
    return ztensor::compute_content_digest2(read(file.bytes()));
  };
  const std::string digest = with(text("sha256:" + std::string(64, '2')));
  EXPECT_TRUE(digest.starts_with("sha256:")) << digest;
  EXPECT_NE(digest, with(text("sha256:" + std::string(64, '3'))));
}

TEST(Zt2, CompressedPartsDecodeAndKeepTheirDigest) {
  Model model;
  std::string data(5'000'001, '\0');
  std::mt19937 random(3);
  for (char& c : data) c = static_cast<char>(random() % 3);
  model.add(dense("big", {data.size()}, DType::u8, data));
  model.add(dense("small", {3}, DType::u8, "abc"));
  model.add(dense("zero", {0}, DType::u8, ""));
  WriteOptions options;
  options.zstd_level = 3;
  const std::string file = written(model, options);
  EXPECT_LT(file.size(), data.size() / 2);
  const Model reread = read(file);
  EXPECT_EQ(bytes_of(reread, "big"), data);
  EXPECT_EQ(bytes_of(reread, "small"), "abc");
  EXPECT_EQ(bytes_of(reread, "zero"), "");
  const Part& big = reread.find("big")->parts.at(0);
  EXPECT_EQ(big.digest->text, xxh3_digest(data));
  EXPECT_EQ(big.blob->stored()->encoding, "zt.zstd-seekable/1");
  EXPECT_TRUE(big.blob->seekable());
  std::vector<std::byte> piece(2'000'000);
  big.blob->read(1'048'570, piece);
  EXPECT_EQ(support::to_string(piece), data.substr(1'048'570, 2'000'000));
}

void store(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Zt2, ShardsHoldTheBlobsAndTheTableTheirDigests) {
  const support::TemporaryDirectory directory;
  Model model;
  for (int i = 0; i < 5; ++i)
    model.add(dense("t" + std::to_string(i), {100'000}, DType::u8, std::string(100'000, static_cast<char>('a' + i))));
  model.add(dense("t9", {100'000}, DType::u8, std::string(100'000, 'a')));
  WriteOptions options;
  options.shard_size = 300'000;
  save(model, directory / "model.zt", "zt", options);
  const Model reread = open(directory / "model.zt");
  ASSERT_EQ(reread.size(), 6U);
  EXPECT_EQ(reread.origin.files.size(), 4U) << "the root and three shards";
  EXPECT_THAT(reread.warnings, IsEmpty());
  for (const Tensor& tensor : model.tensors()) EXPECT_EQ(bytes_of(reread, tensor.name), bytes_of(model, tensor.name));
  const Model in_memory = open(support::source(load(directory / "model.zt"), directory / "model.zt"));
  EXPECT_EQ(in_memory.origin.files.size(), 1U) << "no shard belongs to bytes in memory";
  EXPECT_EQ(in_memory.warnings.size(), 3U);
  const std::string shard = load(directory / "model-00002.zt");
  EXPECT_LE(shard.size(), 300'000U);
  EXPECT_EQ(shard.substr(shard.size() - 40, 24), std::string(24, '\0')) << "a data shard has no manifest";
  EXPECT_THAT(load(directory / "model.zt"), HasSubstr(text("digest") + text(xxh3_digest(shard))));
  EXPECT_EQ(verify(directory / "model.zt").errors(), 0U);
  EXPECT_EQ(verify(directory / "model.zt").digests, 6U);

  std::string damaged = shard;
  damaged[10] = 'x';  // padding: only the shard's own digest sees it
  store(directory / "model-00002.zt", damaged);
  EXPECT_THAT(verify(directory / "model.zt").faults,
              testing::Contains(testing::Field(&Finding::message, HasSubstr("shard 00002: the digest is"))));

  store(directory / "model-00002.zt", shard.substr(1));
  EXPECT_THROW(open(directory / "model.zt"), Error);

  std::filesystem::remove(directory / "model-00002.zt");
  const Model partial = open(directory / "model.zt");
  ASSERT_EQ(partial.size(), 6U);
  EXPECT_THAT(partial.warnings,
              testing::ElementsAre(testing::Field(&Finding::message, HasSubstr("the shard 00002 is missing"))));
  EXPECT_EQ(bytes_of(partial, "t0"), std::string(100'000, 'a'));
  EXPECT_THROW(bytes_of(partial, "t3"), Error);
  EXPECT_GT(verify(directory / "model.zt").errors(), 0U);
}

// All bytes are compared, not only the beginnings.
TEST(Zt2, OnlyIdenticalBytesAreShared) {
  std::string first(200'000, 'x');
  std::string other = first;
  other.back() = 'y';
  Model model;
  model.add(dense("a", {200'000}, DType::u8, first));
  model.add(dense("b", {200'000}, DType::u8, other));
  model.add(dense("c", {200'000}, DType::i8, first));
  const Model reread = read(written(model));
  EXPECT_EQ(bytes_of(reread, "a"), first);
  EXPECT_EQ(bytes_of(reread, "b"), other);
  EXPECT_NE(reread.find("a")->parts[0].blob->stored()->offset, reread.find("b")->parts[0].blob->stored()->offset);
  EXPECT_EQ(reread.find("a")->parts[0].blob->stored()->offset, reread.find("c")->parts[0].blob->stored()->offset);
}

TEST(Zt2, ManyPartsOfOneBeginningAreShared) {
  Model model;
  const auto add = [&](const std::string& name, std::size_t last) {
    std::string data(200'000, 'x');
    data.back() = static_cast<char>(last);
    model.add(dense(name, {200'000}, DType::u8, data));
  };
  constexpr std::size_t kDifferent = 7;
  for (std::size_t i = 0; i < kDifferent; ++i) add(fmt::format("a{}", i), i);
  for (std::size_t i = 0; i < kDifferent; ++i) add(fmt::format("b{}", i), i);
  const Model reread = read(written(model));
  for (std::size_t i = 0; i < kDifferent; ++i) {
    const auto place_of = [&](std::string_view prefix) {
      return reread.find(fmt::format("{}{}", prefix, i))->parts[0].blob->stored()->offset;
    };
    EXPECT_EQ(place_of("a"), place_of("b")) << i;
    EXPECT_EQ(bytes_of(reread, fmt::format("b{}", i)), bytes_of(model, fmt::format("b{}", i)));
  }
}

TEST(Zt2, RefusesWhatItCannotHold) {
  const auto refusal = [](Tensor tensor) {
    Model model;
    model.add(std::move(tensor));
    try {
      written(model);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(dense("", {1}, DType::u8, "x")), HasSubstr("names are 1 to 1024 bytes"));
  EXPECT_THAT(refusal(dense(std::string(1025, 'x'), {1}, DType::u8, "x")), HasSubstr("names are 1 to 1024 bytes"));
  EXPECT_THAT(refusal(dense(std::string("a\0b", 3), {1}, DType::u8, "x")), HasSubstr("without NUL"));
  EXPECT_THAT(refusal(dense("\xff", {1}, DType::u8, "x")), HasSubstr("UTF-8"));
  EXPECT_EQ(refusal(dense(std::string(1024, 'x'), Shape(64, 1), DType::u8, "x")), "");
  Tensor strange = dense("t", {1}, DType::u8, "x");
  strange.layout = TensorLayout::other("");
  EXPECT_THAT(refusal(strange), HasSubstr("its layout has no name"));
  strange.layout = TensorLayout::other("blocky");
  EXPECT_EQ(refusal(strange), "");
  strange.layout = TensorLayout::other("zt.sparse_coo/1");  // a known layout, so its parts are checked
  EXPECT_THAT(refusal(strange),
              HasSubstr("zTensor 2 cannot hold t: tensor t: sparse_coo: data: expected u32 or u64, found u8"));
}

// A manifest has 32 levels: a tensor's attribute begins at the fifth, one of the model at the third.
TEST(Zt2, AttributesNestAsDeepAsTheManifestAllows) {
  const auto nest = [](int levels) {
    Value deep = Value::Array{};
    for (int i = 1; i < levels; ++i) deep = Value::Array{deep};
    return deep;
  };
  const auto refusal = [&](int model_levels, int tensor_levels) {
    Model model;
    model.attributes.set("deep", nest(model_levels));
    Tensor nested = dense("t", {1}, DType::u8, "x");
    nested.attributes.set("deep", nest(tensor_levels));
    model.add(std::move(nested));
    return support::message_of([&] { read(written(model)); });
  };
  EXPECT_EQ(refusal(30, 28), "");
  EXPECT_THAT(refusal(31, 28), HasSubstr("nests too deep, expected at most 30 levels"));
  EXPECT_THAT(refusal(30, 29), HasSubstr("nests too deep, expected at most 28 levels"));
}

TEST(Zt2, AttributesOfEveryKindSurvive) {
  Value deep = 1;
  for (int i = 0; i < 27; ++i) deep = Value::Array{deep};
  const Attributes attributes = {{"array", Value::Array{1, -2, "three"}},
                                 {"bytes", to_bytes("\x00\x01")},
                                 {"deep", deep},
                                 {"false", false},
                                 {"float", 0.1},
                                 {"half", 1.5},
                                 {"map", Attributes{{"b", 2}, {"aa", 1}}},
                                 {"negative", std::int64_t{INT64_MIN}},
                                 {"null", nullptr},
                                 {"pairs", Value::Pairs{{1, 2}, {"x", 3}}},
                                 {"text", "\u00fc"},
                                 {"unsigned", std::uint64_t{UINT64_MAX}}};
  Model model;
  model.attributes = attributes;
  Tensor tensor = dense("t", {1}, DType::u8, "x");
  tensor.attributes = attributes;
  model.add(std::move(tensor));
  const Model reread = read(written(model));
  for (const auto& [key, value] : attributes) {
    if (key == "map") continue;
    EXPECT_EQ(*reread.attributes.find(key), value) << key;
    EXPECT_EQ(*reread.find("t")->attributes.find(key), value) << key;
  }
  EXPECT_EQ(*reread.attributes.find("map"), Value(Attributes{{"b", 2}, {"aa", 1}}))
      << "sorted by encoding: the shorter key first";
  EXPECT_EQ(written(reread), written(model));
}

// Python's unicodedata.normalize("NFC", ...) gives the same names.
TEST(Zt2, NamesAreWrittenInNormalFormC) {
  Model model;
  model.add(dense("\u5c64", {1}, DType::u8, "x"));
  EXPECT_THAT(losses_of(model, kZtensor2, {}), IsEmpty());
  model.add(dense("cafe\u0301", {1}, DType::u8, "y"));
  model.add(dense("\u1112\u1161\u11ab", {1}, DType::u8, "z"));
  EXPECT_THAT(losses_of(model, kZtensor2, {}),
              testing::ElementsAre(HasSubstr("normal form C"), HasSubstr("normal form C")));
  const Model reread = read(written(model));
  EXPECT_EQ(bytes_of(reread, "caf\u00e9"), "y");
  EXPECT_EQ(bytes_of(reread, "\ud55c"), "z");
  model.add(dense("caf\u00e9", {1}, DType::u8, "x"));
  EXPECT_THAT([&] { written(model); }, testing::ThrowsMessage<Error>(HasSubstr("two tensors have the name caf\u00e9")));
}

// Version 1.1 allows columns of a row in any order. Columns 0 and 2 of row 0 are swapped here, with their values.
TEST(Zt2, RowsAreSortedForTheCsrProfile) {
  Tensor tensor;
  tensor.name = "m";
  tensor.shape = {2, 3};
  tensor.layout = Layout::sparse_csr;
  const auto part = [&](std::string role, DType dtype, const std::string& data) {
    tensor.parts.push_back({.role = std::move(role),
                            .dtype = dtype,

                            .blob = make_memory_blob(to_bytes(data), "memory"),
                            .digest = {}});
  };
  part("values", DType::f32, elements<float>({5, 6, 7}));
  part("indices", DType::u64, elements<std::uint64_t>({2, 0, 1}));
  part("indptr", DType::u64, elements<std::uint64_t>({0, 2, 3}));
  Model model;
  model.add(std::move(tensor));
  const Model reread = read(written(model));
  EXPECT_EQ(bytes_of(reread, "m", "values"), elements<float>({6, 5, 7}));
  EXPECT_EQ(bytes_of(reread, "m", "indices"), elements<std::uint64_t>({0, 2, 1}));
  EXPECT_EQ(bytes_of(reread, "m", "indptr"), elements<std::uint64_t>({0, 2, 3}));
}

// A file of version 2 that breaks this rule is not repaired by a conversion.
TEST(Zt2, RowsThatDoNotAscendAreRefusedByWritersAsByVerify) {
  File2 file;
  file.blobs = {{4096, elements<std::uint64_t>({0, 2, 3})},
                {8192, elements<std::uint64_t>({2, 0, 1})},
                {12288, elements<float>({5, 6, 7})}};
  file.manifest = manifest({{text("m"), object({2, 3}, "zt.sparse_csr/1",
                                               {{text("indptr"), part("u64", 4096, 24)},
                                                {text("indices"), part("u64", 8192, 24)},
                                                {text("values"), part("f32", 12288, 12)}})}});
  const Model model = read(file.bytes());
  for (const Format* format : {&kZtensor2, &kZtensor1}) {
    const Error error = error_of([&] { poise::written(model, *format, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << format->info.name;
    EXPECT_EQ(error.message(), "tensor m: indices: the columns of row 0 do not ascend at element 1");
    EXPECT_EQ(error.offset(), 8200U) << format->info.name;
  }
}

// In every format, no file is written that verify would reject.
TEST(Zt2, ValuesThatVerifyCallsWrongAreNotWritten) {
  const auto check = [](const std::string& dtype, const std::string& bytes, std::uint64_t offset,
                        const std::string& problem, const std::vector<const Format*>& formats) {
    File2 file;
    file.blobs = {{4096, bytes}};
    file.manifest = manifest(
        {{text("t"),
          object({3}, "dense", {{text("data"), part("u8", 4096, bytes.size(), {{text("type"), text(dtype)}})}})}});
    const support::TemporaryDirectory directory;
    store(directory / "bad.zt", file.bytes());
    const VerifyReport report = verify(directory / "bad.zt");
    ASSERT_EQ(report.faults.size(), 1U);
    EXPECT_EQ(report.faults[0].message, problem);
    EXPECT_EQ(report.faults[0].offset, offset);
    for (const Format* format : formats) {
      const Error error = error_of([&] { poise::written(read(file.bytes()), *format, {}); });
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << format->info.name;
      EXPECT_EQ(error.message(), problem) << format->info.name;
      EXPECT_EQ(error.offset(), offset) << format->info.name;
    }
  };
  check("bool", hex("00 01 02"), 4098, "tensor t: data: element 2 is neither 0 nor 1",
        {&kZtensor2, &kZtensor1, &kSafetensors});
  check("f4_e2m1", hex("21 43"), 4097, "tensor t: data: the unused half of the last byte is not zero", {&kZtensor2});
}

// The profile requires only that the bytes fill whole blocks. The file does not state their meaning.
TEST(Zt2, VerifyReportsBlocksOfAnUnknownType) {
  File2 file;
  file.blobs = {{4096, std::string(34, '\0')}};
  const std::string attributes = sorted({{text("block_bytes"), number(34)}, {text("elems_per_block"), number(32)}});
  file.manifest = manifest({{text("t"), object({32}, "gguf.q99_z/1", {{text("data"), part("u8", 4096, 34)}},
                                               {{text("attributes"), attributes}})}});
  const support::TemporaryDirectory directory;
  store(directory / "t.zt", file.bytes());
  const VerifyReport report = verify(directory / "t.zt");
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].severity, Severity::warning);
  EXPECT_EQ(
      report.faults[0].message,
      "tensor t: the layout \"gguf.q99_z/1\" is not known to this version of Poise: its elements were not checked");
  EXPECT_EQ(report.faults[0].tensor, "t");
  EXPECT_EQ(report.faults[0].offset, 4096U);
}

// The finding names the tensor in a field of its own, too.
TEST(Zt2, VerifyNamesTheTensorOfAFaultOfTheManifest) {
  File2 file;
  file.blobs = {{4096, elements<float>({1})}};
  file.manifest = manifest({{text("t"), object({1}, "dense", {{text("data"), part("f32", 4095, 4)}})}});
  const support::TemporaryDirectory directory;
  store(directory / "t.zt", file.bytes());
  const VerifyReport report = verify(directory / "t.zt");
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("offset 4095 is not a positive multiple of 4096"));
  EXPECT_EQ(report.faults[0].tensor, "t");
}

TEST(Zt2, RefusalsNameTheReason) {
  const auto of = [](const std::string& part) {
    File2 file;
    file.blobs = {{4096, elements<float>({1})}};
    file.manifest = manifest({{text("t"), object({1}, "dense", {{text("data"), part}})}});
    return file;
  };
  const File2 sound = of(part("f32", 4096, 4));
  ASSERT_EQ(refusal(sound.bytes()), "");
  File2 file = sound;
  file.footer_magic = "ZTEN1000";
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("footer magic: expected 89 5a 54 32 0d 0a 1a 0a as the last 8 bytes, "
                                               "found 5a 54 45 4e 31 30 30 30"));
  file = sound;
  file.hash = 1;
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("the XXH3 of the manifest, found 0000000000000001"));
  EXPECT_THAT(refusal(of(part("f32", 4096, 4, {{text("digest"), text("xxh3:00")}})).bytes()),
              HasSubstr("hexadecimal digits, found \"xxh3:00\""));
  EXPECT_THAT(refusal(of(part("", 4096, 4)).bytes()), HasSubstr("dtype: expected one of the twelve storage types"));

  const auto groups = [&](const std::string& bits, const std::string& zero_point) {
    const std::string packing =
        sorted({{text("word"), text("u8")}, {text("order"), text("lsb_first")}, {text("per_word"), number(2)}});
    const std::string attributes = sorted({{text("bits"), bits},
                                           {text("group_size"), number(2)},
                                           {text("axis"), number(1)},
                                           {text("packing"), packing},
                                           {text("scale_form"), text("f32_factors")},
                                           {text("zero_point"), zero_point}});
    File2 made;
    made.blobs = {{4096, "a"}, {8192, elements<float>({1})}};
    made.manifest =
        manifest({{text("t"), object({1, 2}, "zt.quant_group/1",
                                     {{text("data"), part("u8", 4096, 1)}, {text("scales"), part("f32", 8192, 4)}},
                                     {{text("attributes"), attributes}})}});
    return refusal(made.bytes());
  };
  const std::string none = sorted({{text("form"), text("none")}});
  EXPECT_EQ(groups(number(4), none), "");
  EXPECT_THAT(groups(text("4"), none), HasSubstr("bits: expected an unsigned integer, found \"4\""));
  EXPECT_THAT(groups(number(4), sorted({{text("form"), text("tensor")}})),
              HasSubstr("zero_point: packing: expected text, found nothing"));
}

TEST(Zt2, EveryTruncationIsRefused) {
  const std::string file = golden_file();
  for (std::size_t length = 0; length < file.size(); length += length < 262000 && length > 100 ? 997 : 1) {
    EXPECT_THROW(read(file.substr(0, length)), Error) << length;
  }
}

// The hash protects every bit of the manifest and the footer, except the reserved field, which readers ignore. A part's
// digest finds a flipped bit of a tensor.
TEST(Zt2, AFlippedBitOfManifestOrFooterIsRefused) {
  const std::string file = golden_file();
  const std::size_t reserved = file.size() - 12;
  for (std::size_t byte = 262144; byte < file.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = file;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 1 << bit);
      if (byte >= reserved && byte < reserved + 4) {
        EXPECT_EQ(read(flipped).size(), 5U);
      } else {
        EXPECT_THROW(read(flipped), Error) << byte;
      }
    }
  }
}

TEST(Zt2, AFlippedBitOfATensorIsFoundByVerify) {
  const support::TemporaryDirectory directory;
  store(directory / "good.zt", golden_file());
  const VerifyReport good = verify(directory / "good.zt");
  EXPECT_THAT(good.faults, IsEmpty());
  EXPECT_EQ(good.digests, 5U);
  std::string flipped = golden_file();
  flipped[65536] = static_cast<char>(flipped[65536] ^ 1);
  store(directory / "bad.zt", flipped);
  const VerifyReport bad = verify(directory / "bad.zt");
  ASSERT_EQ(bad.faults.size(), 1U);
  EXPECT_THAT(bad.faults[0].message, HasSubstr("tensor a.w: data: the digest is xxh3:"));
  EXPECT_EQ(bad.faults[0].offset, 65536U);
  std::string padding = golden_file();
  padding[70000] = 'x';
  store(directory / "padding.zt", padding);
  const VerifyReport warned = verify(directory / "padding.zt");
  ASSERT_EQ(warned.faults.size(), 1U);
  EXPECT_EQ(warned.faults[0].severity, Severity::warning);
  EXPECT_EQ(warned.faults[0].offset, 70000U);
}

// Reading the bytes once for each tensor would take as long as reading many files.
TEST(Zt2, BytesThatTensorsShareAreVerifiedOnceAndNamedForEach) {
  const support::TemporaryDirectory directory;
  std::string file = golden_file();
  file[131072] = static_cast<char>(file[131072] ^ 1);
  store(directory / "bad.zt", file);
  const VerifyReport report = verify(directory / "bad.zt");
  EXPECT_EQ(report.digests, 5U);
  EXPECT_EQ(report.bytes, 8U + 8U + 8U);
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("tensor b: data: the digest is xxh3:"));
  EXPECT_EQ(report.faults[1].message,
            "tensor copy.of.b: data: these are the bytes of tensor b: data, which has findings");
  EXPECT_EQ(report.faults[1].path, directory / "bad.zt");
  EXPECT_EQ(report.faults[1].offset, 131072U);
}

// Makes a row of three columns whose only element is in column 99.
auto misplaced(std::uint64_t values, const Entries& digest) {
  return object({1, 3}, "zt.sparse_csr/1",
                {{text("indptr"), part("u64", 4096, 16)},
                 {text("indices"), part("u64", 8192, 8)},
                 {text("values"), part("f32", values, 4, digest)}});
}

// Other faults are found, even if a digest is wrong or cannot be checked.
TEST(Zt2, FaultsBetweenPartsAreFoundNextToThoseOfParts) {
  for (const std::string digest : {"blake3:00ff", "xxh3:0000000000000000"}) {
    const support::TemporaryDirectory directory;
    File2 file;
    file.blobs = {
        {4096, elements<std::uint64_t>({0, 1})}, {8192, elements<std::uint64_t>({99})}, {12288, elements<float>({1})}};
    file.manifest = manifest({{text("t"), misplaced(12288, {{text("digest"), text(digest)}})}});
    store(directory / "bad.zt", file.bytes());
    const VerifyReport report = verify(directory / "bad.zt");
    ASSERT_EQ(report.faults.size(), 2U) << digest;
    EXPECT_THAT(report.faults[0].message, HasSubstr(digest));
    EXPECT_THAT(report.faults[1].message, HasSubstr("is in column 99"));
    EXPECT_EQ(report.faults[1].severity, Severity::error);
  }
}

// verify lists twenty wrong indices with their places, and the number of others.
TEST(Zt2, EveryWrongIndexIsReported) {
  const support::TemporaryDirectory directory;
  std::string columns;
  for (std::uint64_t i = 0; i < 23; ++i) columns += elements<std::uint64_t>({99 + i});
  File2 file;
  file.blobs = {{4096, elements<std::uint64_t>({0, 23})}, {8192, columns}, {12288, std::string(23 * 4, '\0')}};
  file.manifest = manifest({{text("t"), object({1, 3}, "zt.sparse_csr/1",
                                               {{text("indptr"), part("u64", 4096, 16)},
                                                {text("indices"), part("u64", 8192, 23 * 8)},
                                                {text("values"), part("f32", 12288, 23 * 4)}})}});
  store(directory / "bad.zt", file.bytes());
  const VerifyReport report = verify(directory / "bad.zt");
  ASSERT_EQ(report.faults.size(), 21U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(report.faults[i].offset, 8192 + 8 * i);
  EXPECT_THAT(report.faults[19].message, HasSubstr("element 19 in row 0 is in column 118, there are 3"));
  EXPECT_EQ(report.faults[20].message, "tensor t: 3 more indices are wrong");
}

TEST(Zt2, IndicesThatTensorsShareAreCheckedOnceAndNamedForEach) {
  const support::TemporaryDirectory directory;
  File2 file;
  file.blobs = {{4096, elements<std::uint64_t>({0, 1})},
                {8192, elements<std::uint64_t>({99})},
                {12288, elements<float>({1})},
                {16384, elements<float>({2})}};
  file.manifest = manifest({{text("a"), misplaced(12288, {})}, {text("b"), misplaced(16384, {})}});
  store(directory / "bad.zt", file.bytes());
  const VerifyReport report = verify(directory / "bad.zt");
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("tensor a: indices: element 0 in row 0 is in column 99"));
  EXPECT_EQ(report.faults[1].message, "tensor b: its indices are those of tensor a, which has findings");
  EXPECT_EQ(report.faults[1].offset, report.faults[0].offset);
}

TEST(Zt2, TensorsOfTheSameFramesShareTheirTable) {
  const support::TemporaryDirectory directory;
  File2 file;
  file.blobs = {{4096, "frames, perhaps"}};
  const auto tensor = [](std::uint64_t elements) {
    return object({elements}, "dense",
                  {{text("data"), part("u8", 4096, 15,
                                       {{text("encoding"), text("zt.zstd-seekable/1")},
                                        {text("decoded_length"), number(elements)}})}});
  };
  file.manifest = manifest({{text("a"), tensor(8)}, {text("b"), tensor(8)}, {text("c"), tensor(9)}});
  store(directory / "shared.zt", file.bytes());
  const Model model = open(directory / "shared.zt");
  EXPECT_EQ(model.find("a")->parts[0].blob.get(), model.find("b")->parts[0].blob.get());
  EXPECT_NE(model.find("a")->parts[0].blob.get(), model.find("c")->parts[0].blob.get());
}

// A part that cannot be decoded is reported once, and not again for its indices or for tensors that share it.
TEST(Zt2, APartThatCannotBeReadIsNamedOnce) {
  const support::TemporaryDirectory directory;
  File2 file;
  file.blobs = {{4096, "no zstd"}, {8192, elements<float>({1})}};
  const auto sparse = [](std::uint64_t columns) {
    return object(
        {columns}, "zt.sparse_coo/1",
        {{text("coords"),
          part("u64", 4096, 7, {{text("encoding"), text("zt.zstd-seekable/1")}, {text("decoded_length"), number(8)}})},
         {text("values"), part("f32", 8192, 4)}});
  };
  file.manifest = manifest({{text("a"), sparse(5)}, {text("b"), sparse(6)}});
  store(directory / "bad.zt", file.bytes());
  const VerifyReport report = verify(directory / "bad.zt");
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("tensor a: coords: "));
  EXPECT_EQ(report.faults[1].message, "tensor b: coords: these are the bytes of tensor a: coords, which has findings");
}

TEST(Zt2, HashIgnoresDigestsInTheFile) {
  const support::TemporaryDirectory directory;
  std::string file = golden_file();
  file[65536] = static_cast<char>(file[65536] ^ 1);
  store(directory / "bad.zt", file);
  try {
    hash(open(directory / "bad.zt"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.message(), HasSubstr("tensor a.w: data: the digest is xxh3:"));
    EXPECT_EQ(error.offset(), 65536U);
  }
}

TEST(Zt2, ATensorThatSharesBytesHasTheWorstOfTheirFaults) {
  const support::TemporaryDirectory directory;
  File2 file;
  file.blobs = {{4096, hex("02")}};  // 2 is not a boolean
  const Entries data = {
      {text("data"), part("u8", 4096, 1, {{text("type"), text("bool")}, {text("digest"), text("md5:00")}})}};
  file.manifest = manifest({{text("a"), object({1}, "dense", data)}, {text("b"), object({1}, "dense", data)}});
  store(directory / "two.zt", file.bytes());
  const VerifyReport report = verify(directory / "two.zt");
  ASSERT_EQ(report.faults.size(), 3U);
  EXPECT_EQ(report.errors(), 2U);
  EXPECT_THAT(report.faults[2].message, HasSubstr("tensor b: data: these are"));
  EXPECT_EQ(report.faults[2].severity, Severity::error);
}

}  // namespace
}  // namespace poise
