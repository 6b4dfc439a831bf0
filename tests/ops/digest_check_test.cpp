// Converting and comparing detect damage by digests, wherever the bytes go.
#include "ops/digest_check.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/diff.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/verify.hpp>

#include "pack/digest.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DigestCheckTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_ / name; }

  // Returns a model of three matrices of small numbers, all different: a, b and c.
  static Model model() {
    Model model;
    for (const char* name : {"a", "b", "c"}) {
      std::vector<float> numbers(64 * 64);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<float>(i) / 4096 + static_cast<float>(*name);
      const auto bytes = std::as_bytes(std::span(numbers));
      model.add(make_dense(name, {64, 64}, DType::f32, make_memory_blob({bytes.begin(), bytes.end()}, name)));
    }
    return model;
  }

  // Changes a bit of the lowest byte of a number in the middle of a tensor.
  static void damage(const fs::path& file, const std::string& tensor) {
    const Stored at = open(file).find(tensor)->parts.front().blob->stored().value();
    flip(at.source->name(), at.offset + at.length / 2 / 4 * 4);
  }
  static void flip(const fs::path& file, std::uint64_t offset) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(offset));
    const int byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(byte ^ 1));
  }

  // Returns the error of convert(), which leaves no output.
  std::string refusal(const fs::path& input, const ConvertOptions& options = {},
                      const std::string& output = "out.zt") const {
    try {
      convert(input, path(output), options);
    } catch (const Error& error) {
      EXPECT_FALSE(fs::exists(path(output)));
      return error.message();
    }
    fs::remove(path(output));
    return {};
  }

  fs::path saved(const std::string& name, std::string_view format, const WriteOptions& options) const {
    save(model(), path(name), format, options);
    return path(name);
  }

  support::TemporaryDirectory directory_;
};

WriteOptions with(DigestAlgorithm digest, std::optional<int> zstd_level = std::nullopt) {
  WriteOptions options;
  options.overwrite = true;
  options.digest = digest;
  options.zstd_level = zstd_level;
  return options;
}

TEST_F(DigestCheckTest, DigestsOfEveryKindAreChecked) {
  struct DigestCase {
    const char* format;
    DigestAlgorithm digest;
    std::optional<int> zstd_level;
  };
  for (const auto& [format, digest, level] :
       {DigestCase{"zt", DigestAlgorithm::xxh3, {}}, DigestCase{"zt", DigestAlgorithm::sha256, {}},
        DigestCase{"zt1", DigestAlgorithm::sha256, {}}, DigestCase{"zt1", DigestAlgorithm::crc32c, {}},
        DigestCase{"zt1", DigestAlgorithm::sha256, 3}, DigestCase{"zt", DigestAlgorithm::xxh3, 3}}) {
    const fs::path file = saved("in.zt", format, with(digest, level));
    EXPECT_EQ(refusal(file), "") << format;
    damage(file, "b");
    EXPECT_THAT(refusal(file), HasSubstr("tensor b: data")) << format;
    if (!level) {
      EXPECT_THAT(refusal(file), HasSubstr("the digest is")) << format;
    }
    for (const IoMode io : {IoMode::map, IoMode::read}) {
      ConvertOptions options;
      options.read.io = io;
      EXPECT_THAT(refusal(file, options, "out.safetensors"), HasSubstr("tensor b: data")) << format;
    }
  }
}

// hash() prints nothing for bytes with a wrong digest of any kind.
TEST_F(DigestCheckTest, AreCheckedByHash) {
  for (const auto& [format, digest, level] : {std::tuple("zt", DigestAlgorithm::xxh3, std::optional<int>()),
                                              {"zt", DigestAlgorithm::sha256, {}},
                                              {"zt1", DigestAlgorithm::sha256, {}},
                                              {"zt1", DigestAlgorithm::crc32c, {}},
                                              {"zt1", DigestAlgorithm::sha256, 3},
                                              {"zt1", DigestAlgorithm::crc32c, 3}}) {
    const fs::path file = saved("in.zt", format, with(digest, level));
    EXPECT_EQ(hash(open(file)).model, hash(model()).model) << format;
    damage(file, "b");
    try {
      hash(open(file));
      ADD_FAILURE() << format;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("tensor b: data")) << format;
    }
  }
}

// A damaged part may not decode far enough to have a digest, and may be read before digests are looked at.
TEST_F(DigestCheckTest, PartsThatCannotBeDecodedAreNamedToo) {
  for (const char* format : {"zt", "zt1"}) {
    const fs::path file = saved("in.zt", format, with(DigestAlgorithm::none, 3));
    const Stored at = open(file).find("b")->parts.front().blob->stored().value();
    flip(file, at.offset);  // the magic number of the frame
    ConvertOptions trusting;
    trusting.verify = false;
    ConvertOptions sparse;
    sparse.sparse = Layout::sparse_csr;
    for (const ConvertOptions& options : {ConvertOptions{}, trusting, sparse})
      EXPECT_THAT(refusal(file, options), HasSubstr("tensor b: data: z")) << format;
    for (const bool verify : {true, false}) {
      try {
        diff(open(file), open(file), {}, verify);
        ADD_FAILURE() << format;
      } catch (const Error& error) {
        EXPECT_THAT(error.message(), HasSubstr("tensor b: data: z")) << format;
        EXPECT_EQ(error.path(), file);
      }
    }
    EXPECT_THROW(hash(open(file)), Error);
  }
}

TEST_F(DigestCheckTest, DamageIsFoundWhateverTheBytesBecome) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  damage(file, "c");
  for (const char* type : {"f16", "qint8", "group4"}) {
    ConvertOptions options;
    options.keep = {{"*", *stored_type_from_name(type)}};
    EXPECT_THAT(refusal(file, options), HasSubstr("tensor c: data: the digest is")) << type;
  }
  ConvertOptions options;
  options.sparse = Layout::sparse_csr;
  options.min_sparsity = 0;
  EXPECT_THAT(refusal(file, options), HasSubstr("tensor c: data: the digest is"));
  options = {};
  options.write.digest = DigestAlgorithm::sha256;
  EXPECT_THAT(refusal(file, options), HasSubstr("tensor c: data: the digest is"));
}

TEST_F(DigestCheckTest, OfSparseTensorsThatBecomeDense) {
  ConvertOptions sparse;
  sparse.sparse = Layout::sparse_coo;
  sparse.min_sparsity = 0;
  saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  convert(path("in.zt"), path("sparse.zt"), sparse);
  const Stored at = open(path("sparse.zt")).find("b")->require("values").blob->stored().value();
  flip(path("sparse.zt"), at.offset);
  EXPECT_THAT(refusal(path("sparse.zt"), {}, "out.safetensors"), HasSubstr("tensor b: values: the digest is"));
}

TEST_F(DigestCheckTest, OnlySelectedTensorsAreChecked) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  damage(file, "b");
  ConvertOptions options;
  options.skip = {"b"};
  EXPECT_EQ(refusal(file, options), "");
}

// A file in the dialect of alt.c has no tensors.
TEST_F(DigestCheckTest, NoTensorIsCheckedIfNoneIsWritten) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  damage(file, "b");
  Model metadata = open(file);
  metadata.config.emplace();
  metadata.config->hidden_act = "silu";
  metadata.config->head_dim = 64;  // determines the order of fields in the file
  metadata.vocabulary.emplace();
  metadata.vocabulary->add("x", 0, TokenType::normal);
  save(metadata, path("with_config.zt"), "zt", with(DigestAlgorithm::none));
  // The same with digests, and damage to one tensor.
  ConvertOptions digested;
  digested.write = with(DigestAlgorithm::xxh3);
  convert(path("with_config.zt"), path("digested.zt"), digested);
  damage(path("digested.zt"), "c");
  ConvertOptions options;
  options.write.dialect = "alt.c";
  EXPECT_EQ(refusal(path("digested.zt"), options, "out.alt"), "");
  EXPECT_THAT(refusal(path("digested.zt"), {}, "out.alt"), HasSubstr("tensor c: data: the digest is"));
}

TEST_F(DigestCheckTest, AreNotCheckedWithoutVerify) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  damage(file, "b");
  ConvertOptions options;
  options.verify = false;
  EXPECT_EQ(refusal(file, options), "");
}

TEST_F(DigestCheckTest, TheFirstInTheFileIsNamed) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::sha256));
  damage(file, "c");
  damage(file, "a");
  EXPECT_THAT(refusal(file), HasSubstr("tensor a: data"));
}

TEST_F(DigestCheckTest, SwappedShardsAreFoundWithoutDigestsOfParts) {
  for (const DigestAlgorithm digest : {DigestAlgorithm::none, DigestAlgorithm::xxh3}) {
    WriteOptions options = with(digest);
    options.shard_size = 1;
    options.align = 4096;
    const fs::path file = saved("in.zt", "zt", options);
    ASSERT_EQ(fs::file_size(path("in-00001.zt")), fs::file_size(path("in-00002.zt")));
    EXPECT_EQ(refusal(file), "");
    fs::rename(path("in-00001.zt"), path("other"));
    fs::rename(path("in-00002.zt"), path("in-00001.zt"));
    fs::rename(path("other"), path("in-00002.zt"));
    EXPECT_THAT(refusal(file), HasSubstr(digest == DigestAlgorithm::none ? "tensor a: data: shard 00001: the digest is"
                                                                         : "tensor a: data: the digest is"));
    ConvertOptions rest;
    rest.only = {"c"};
    EXPECT_EQ(refusal(file, rest), "");
    try {
      hash(open(file));
      ADD_FAILURE() << "damaged parts were hashed";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(),
                  HasSubstr(digest == DigestAlgorithm::none ? ": data: shard 0000" : ": data: the digest is"));
    }
    const VerifyReport report = verify(file);
    EXPECT_EQ(report.errors(), digest == DigestAlgorithm::none ? 2U : 4U);
    EXPECT_THAT(report.faults.back().message, HasSubstr("shard 00002: the digest is"));
    EXPECT_EQ(report.faults.back().path, path("in-00002.zt"));
    fs::remove(file);
  }
}

// Gives the first shard of a zt file another digest: in the manifest, and so in the footer, 40 bytes that begin with
// the manifest's offset, length and XXH3.
void set_shard_digest(const fs::path& file, const std::string& digest) {
  const std::string content = support::contents(file);
  std::string footer = content.substr(content.size() - 40);
  const auto offset =
      content.size() - 40 -
      static_cast<std::size_t>(static_cast<unsigned char>(footer[8]) | static_cast<unsigned char>(footer[9]) << 8);
  std::string manifest = content.substr(offset, content.size() - 40 - offset);
  const std::size_t before = manifest.find("\x75xxh3:");  // CBOR: a text of 21 bytes
  ASSERT_NE(before, std::string::npos);
  manifest.replace(before, 22, static_cast<char>(0x60 + digest.size()) + digest);
  const auto hasher = make_xxh3();
  hasher->update(std::as_bytes(std::span(manifest)));
  const std::uint64_t fields[] = {manifest.size(), std::stoull(hasher->finish(), nullptr, 16)};
  std::memcpy(footer.data() + 8, fields, sizeof fields);
  support::put(file, content.substr(0, offset) + manifest + footer);
}

// Version 2 defines only xxh3 and sha256: verify() and convert() treat other kinds in one way.
TEST_F(DigestCheckTest, HashingReadsShardsWithoutDigestsOfParts) {
  WriteOptions options = with(DigestAlgorithm::none);
  options.shard_size = 1;
  const fs::path file = saved("in.zt", "zt", options);
  std::uint64_t total = 0;
  const ModelHash hashed = hash(open(file), [&](const ProgressEvent& event) {
    total = event.total;
    return true;
  });
  EXPECT_EQ(hashed.model, hash(model()).model);
  EXPECT_EQ(total, 3 * 64 * 64 * 4 + fs::file_size(path("in-00001.zt")) + fs::file_size(path("in-00002.zt")) +
                       fs::file_size(path("in-00003.zt")));
}

// Tensors that share their bytes are read once, and each is listed.
TEST_F(DigestCheckTest, HashingReadsSharedBytesOnce) {
  const SourcePtr source = Source::from_memory(std::vector<std::byte>(4096, std::byte{1}), "shared");
  Model shared;
  for (const char* name : {"a", "b"})
    shared.add(make_dense(name, {1024}, DType::f32, make_source_blob(source, 0, 4096)));
  shared.add(make_dense("c", {512}, DType::f32, make_source_blob(source, 0, 2048)));
  std::uint64_t total = 0;
  const ModelHash hashed = hash(shared, [&](const ProgressEvent& event) {
    total = event.total;
    return true;
  });
  EXPECT_EQ(total, 4096U + 2048U);
  ASSERT_EQ(hashed.parts.size(), 3U);
  EXPECT_EQ(hashed.parts[0].sha256, compute_sha256(std::vector<std::byte>(4096, std::byte{1})));
  EXPECT_EQ(hashed.parts[1].sha256, hashed.parts[0].sha256);
  EXPECT_EQ(hashed.parts[1].tensor, "b");
  EXPECT_EQ(hashed.parts[2].sha256, compute_sha256(std::vector<std::byte>(2048, std::byte{1})));
}

TEST_F(DigestCheckTest, UnknownKindsOfShardsAreReported) {
  WriteOptions options = with(DigestAlgorithm::none);
  options.shard_size = 1;
  for (const std::string digest : {"md5:00", "crc32c:0x00000000"}) {
    const fs::path file = saved("in.zt", "zt", options);
    set_shard_digest(file, digest);
    EXPECT_EQ(verify(file).errors(), 0U);
    EXPECT_EQ(verify(file).warnings(), 1U);
    const ConvertReport report = convert(file, path("out.zt"));
    ASSERT_EQ(report.warnings.size(), 1U);
    EXPECT_EQ(report.warnings[0].message,
              "shard 00001: the digest " + digest + " is of a kind that Poise cannot compute; it was not checked");
    fs::remove(path("out.zt"));
  }
}

TEST_F(DigestCheckTest, FilesThatChangeMeanwhileAreRefused) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  ConvertOptions options;
  bool changed = false;
  options.write.progress = [&](const ProgressEvent& event) {
    if (event.item != "a" && !changed) damage(file, "a");  // which is written already
    changed = changed || event.item != "a";
    return true;
  };
  EXPECT_THAT(refusal(file, options), testing::AnyOf(HasSubstr("the file changed while it was read"),
                                                     HasSubstr("tensor a: data: the digest is")));
  EXPECT_TRUE(changed);
}

TEST_F(DigestCheckTest, ACallerCanCancel) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::sha256));
  ConvertOptions options;
  options.write.progress = [](const ProgressEvent&) { return false; };
  EXPECT_EQ(refusal(file, options), "cancelled");
}

TEST_F(DigestCheckTest, ComparingChecksBothFiles) {
  const fs::path file = saved("in.zt", "zt", with(DigestAlgorithm::xxh3));
  const fs::path other = saved("other.zt1", "zt1", with(DigestAlgorithm::crc32c));
  EXPECT_TRUE(diff(open(file), open(other)).same());
  damage(other, "b");
  EXPECT_THROW(diff(open(file), open(other)), Error);
  EXPECT_THROW(diff(open(other), open(file)), Error);
  EXPECT_EQ(diff(open(file), open(other), {}, false).tensors.size(), 1U);
}

TEST_F(DigestCheckTest, UnknownKindsAreReported) {
  Model odd = model();
  Model digested;
  for (Tensor tensor : odd.tensors()) {
    tensor.parts.front().digest = Digest{DigestAlgorithm::unknown, "md5:00", false};
    digested.add(std::move(tensor));
  }
  const DigestCheck check({&digested}, [](const Tensor&) { return true; });
  ASSERT_TRUE(check.find_unchecked());
  EXPECT_EQ(
      check.find_unchecked()->message,
      "tensor a: data: the digest md5:00 (and 2 more) is of a kind that Poise cannot compute; it was not checked");
  EXPECT_EQ(diff(digested, odd, {}, false).warnings.size(), 0U);
  const DiffReport report = diff(digested, odd);
  EXPECT_TRUE(report.same());
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_EQ(report.warnings[0].message, check.find_unchecked()->message);
}

}  // namespace
}  // namespace poise
