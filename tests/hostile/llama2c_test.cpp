// Breaks every rule of llama2.c's files once (docs/formats/llama2c.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include <fmt/format.h>

#include <poise/format.hpp>

#include "support/errors.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

std::string floats(std::size_t count) { return std::string(4 * count, '\0'); }

// Returns a file: dim 4, hidden 6, one layer, two heads, one of keys, 5 tokens, 8 positions; norms of 4 floats,
// matrices of 20, 16, 8, 8, 16, 24, 24, 24 and 20 elements.
ByteFile numbers() {
  ByteFile file;
  file.i32("dim", 4).i32("hidden", 6).i32("layers", 1).i32("heads", 2).i32("key heads", 1).i32("vocabulary", 5);
  return file.i32("positions", 8);
}
ByteFile version_0() { return numbers().i32("vocabulary", -5).raw("data", floats(12 + 160 + 16)); }
ByteFile version_1() {
  ByteFile file;
  file.u32("magic", 0x616b3432).i32("version", 1).append(numbers()).u8("shared", 0);
  return file.raw("padding", std::string(256 - 37, '\0')).raw("data", floats(12 + 160));
}
// Returns a file with groups of two codes.
ByteFile version_2() {
  ByteFile file;
  file.u32("magic", 0x616b3432).i32("version", 2).append(numbers()).u8("shared", 1).i32("group size", 2);
  return file.raw("padding", std::string(256 - 41, '\0')).raw("data", floats(12) + std::string(140 + 4 * 70, '\0'));
}

const HostileTable kTable("llama2c", [] { return version_1().bytes(); });

TEST(HostileLlama2c, TheFilesAreSoundBeforeTheyAreBroken) {
  for (const ByteFile& file : {version_0(), version_1(), version_2()}) {
    const std::string bytes = file.bytes();
    expect_harmless("hostile.bin", bytes);
    EXPECT_GT(open(support::source(bytes, "hostile.bin")).size(), 10U);
  }
}

// The fields of TransformerWeights in llama2.c's run.c.
TEST(HostileLlama2c, TensorsHaveTheNamesOfTheProgram) {
  for (const ByteFile& file : {version_0(), version_1(), version_2()}) {
    const Model model = open(support::source(file.bytes(), "hostile.bin"));
    EXPECT_EQ(model.find("model.embed_tokens.weight")->name_in_file(), "token_embedding_table");
    EXPECT_EQ(model.find("model.layers.0.self_attn.k_proj.weight")->name_in_file(), "wk");
    EXPECT_EQ(model.find("model.layers.0.mlp.down_proj.weight")->name_in_file(), "w2");
    EXPECT_EQ(model.find("model.layers.0.post_attention_layernorm.weight")->name_in_file(), "rms_ffn_weight");
    EXPECT_EQ(model.find_in_file("wk").size(), 1U);
    EXPECT_TRUE(model.find_in_file("wx").empty());
  }
}

TEST(HostileLlama2c, Header) {
  expect_refused(
      "hostile.bin",
      std::array{
          Case{"the version is known", [] { return version_1().i32("version", 3); }, kUnsupported, "version",
               "header: version: 3 is not known"},
          Case{"the dimension is positive", [] { return version_1().i32("dim", 0); }, kInvalid, "dim", "dim: 0"},
          Case{"the inner dimension is positive", [] { return version_1().i32("hidden", -1); }, kInvalid, "hidden",
               "hidden_dim: -1"},
          Case{"there are layers", [] { return version_1().i32("layers", 0); }, kInvalid, "layers", "n_layers: 0"},
          Case{"there are not too many layers", [] { return version_1().i32("layers", 65537); }, kInvalid, "layers",
               "n_layers: 65537"},
          Case{"there are heads", [] { return version_1().i32("heads", 0); }, kInvalid, "heads", "n_heads: 0"},
          Case{"heads divide the dimension", [] { return version_1().i32("heads", 3); }, kInvalid, "dim",
               "3 heads do not divide 4"},
          Case{"heads have halves", [] { return version_1().i32("heads", 4); }, kInvalid, "dim", "an odd number"},
          Case{"heads of keys are positive", [] { return version_1().i32("key heads", 0); }, kInvalid, "key heads",
               "n_kv_heads: 0"},
          Case{"there are tokens", [] { return version_1().i32("vocabulary", 0); }, kInvalid, "vocabulary",
               "vocab_size: 0"},
          Case{"their number has no sign", [] { return version_1().i32("vocabulary", -5); }, kInvalid, "vocabulary",
               "vocab_size: -5"},
          Case{"there are positions", [] { return version_1().i32("positions", 0); }, kInvalid, "positions",
               "seq_len: 0"},
          Case{"the output is shared or not", [] { return version_1().u8("shared", 2); }, kInvalid, "shared",
               "shared_classifier: 2"},
          Case{"padding is zero", [] { return version_1().raw("padding", "x" + std::string(218, '\0')); }, kInvalid,
               "padding", "padding: expected zero bytes"},
          Case{"groups have codes", [] { return version_2().i32("group size", 0); }, kInvalid, "group size",
               "group_size: 0"},
          Case{"groups are in a row", [] { return version_2().i32("group size", 4); }, kUnsupported, "group size",
               "are not whole groups of 4"},
          Case{"the header is whole", [] { return version_1().cut("padding", 3); }, kInvalid, kEndOfFile, "padding"},
          Case{"the arrays are whole", [] { return version_1().cut("data", 80); }, kInvalid, kEndOfFile,
               "the file is cut off"},
          Case{"nothing follows the arrays", [] { return version_1().raw("more", "x"); }, kInvalid, "more",
               "1 bytes after the last array"},
          Case{"sizes are not claimed for nothing", [] { return version_1().i32("vocabulary", 0x7fffffff); }, kInvalid,
               kEndOfFile, "the file is cut off"},
      });
}

// Version 0 has no magic. Other files with this extension are of no format that Poise knows.
TEST(HostileLlama2c, DamagedFilesOfVersion0AreRecognized) {
  const std::string bytes = version_0().bytes();
  const auto refusal = [](const std::string& given) {
    return support::error_of([&] { (void)open(support::source(given, "hostile.bin")); }).message();
  };
  EXPECT_EQ(refusal(bytes.substr(0, 100)),
            fmt::format("llama2c: size: the file is cut off: its header describes {} bytes, it has 100", bytes.size()));
  EXPECT_THAT(refusal(bytes.substr(0, 28)), testing::HasSubstr("it has 28"));
  EXPECT_THAT(refusal(bytes + "x"), testing::HasSubstr("1 bytes after the last array"));
  for (const std::string& other :
       {bytes.substr(0, 27), numbers().i32("heads", 3).bytes() + floats(9), std::string("abc"), floats(100)})
    EXPECT_EQ(refusal(other), "this is not in a format that Poise reads");
}

TEST(HostileLlama2c, CutsAreRefused) { expect_cuts_refused("hostile.bin", version_1()); }

}  // namespace
}  // namespace poise::hostile
