// A file with one layer was laid out by hand from "File Structure" of the specification. It is read and written byte
// for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "family/config_json.hpp"
#include "formats/registry.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

using testing::HasSubstr;

class Bytes {
 public:
  template <typename T>
  Bytes& put(T value) {
    const auto* from = reinterpret_cast<const char*>(&value);
    bytes_.append(from, sizeof value);
    return *this;
  }
  Bytes& matrix(std::uint64_t rows, std::uint64_t columns) { return put(rows).put(columns).values(rows * columns); }
  Bytes& vector(std::uint64_t size) { return put(size).values(size); }
  const std::string& str() const { return bytes_; }

 private:
  Bytes& values(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) put(static_cast<float>(next_++) / 8);
    return *this;
  }
  std::string bytes_;
  int next_ = -20;
};

// Returns a file with D 2, one layer, 1 head, F 3, S 4 and V 5 (docs/formats/tiny-llama.md).
std::string golden() {
  Bytes file;
  file.put<std::uint32_t>(0x544C4C4D).put<std::uint32_t>(1);
  for (const int size : {2, 1, 1, 3, 4, 5}) file.put<std::int32_t>(size);
  file.put(0.1F);
  file.matrix(5, 2).matrix(4, 2);                            // embedding, position
  file.matrix(2, 2).matrix(2, 2).matrix(2, 2).matrix(2, 2);  // query, key, value, output
  file.matrix(2, 3).vector(3).matrix(3, 2).vector(2);        // linear1, bias, linear2, bias
  file.vector(2).vector(2).vector(2).vector(2);              // norms
  file.matrix(2, 5);                                         // output projection
  return file.str();
}

SourcePtr source(const std::string& bytes) { return support::source(bytes, "model.tllm"); }

std::string error_of(const std::string& bytes) {
  return support::message_of([&] { open(source(bytes)); });
}

std::string written(const Model& model) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / ("poise_tllm_" + std::to_string(std::random_device()()));
  WriteOptions options;
  options.overwrite = true;
  save(model, path, "tllm", options);
  std::string bytes = support::contents(path);
  std::filesystem::remove(path);
  return bytes;
}

template <typename T>
std::string patched(std::size_t offset, T value) {
  std::string bytes = golden();
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

TEST(TinyLlamaFile, TheGoldenFileIsReadAndWritten) {
  // 36 + (16 + 40) + (16 + 32) + 4 (16 + 16) + (16 + 24) + (8 + 12) + (16 + 24) + (8 + 8) + 4 (8 + 8) + (16 + 40)
  ASSERT_EQ(golden().size(), 504U);
  const Model model = open(source(golden()));
  EXPECT_EQ(model.origin.format, "tllm");
  EXPECT_EQ(model.card.model_type, "tiny_llama");
  EXPECT_EQ(model.config->hidden_size, 2);
  EXPECT_EQ(model.config->intermediate_size, 3);
  EXPECT_EQ(model.config->max_position_embeddings, 4);
  EXPECT_EQ(model.config->vocab_size, 5);
  EXPECT_FLOAT_EQ(model.config->dropout, 0.1F);
  ASSERT_EQ(model.size(), 15U);
  const Tensor& bias = *model.find("layers.0.ffn.linear1.bias");
  EXPECT_EQ(bias.shape, Shape{3});
  const auto at = bias.require("data").blob->stored();
  EXPECT_EQ(at->offset, 36U + 56 + 48 + 4 * 32 + 40 + 8);
  EXPECT_TRUE(bias.require("data").blob->map()) << "zero-copy";
  EXPECT_EQ(written(model), golden());
}

TEST(TinyLlamaFile, EveryHeaderFieldIsChecked) {
  EXPECT_THAT(error_of(patched<std::uint32_t>(0, 0x4D4C4C54)),
              HasSubstr("begins with the letters \"TLLM\", so its bytes are swapped"));
  EXPECT_THAT(error_of(patched<std::uint32_t>(4, 2)), HasSubstr("version: expected 1, found 2 (at 0x4)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(8, 0)),
              HasSubstr("model dimension: expected at least 1, found 0 (at 0x8)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(12, -1)),
              HasSubstr("number of layers: expected at least 1, found -1 (at 0xc)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(16, 3)),
              HasSubstr("number of heads: 3 do not divide the model dimension 2 (at 0x10)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(12, 65537)),
              HasSubstr("number of layers: expected at most 65536, found 65537 (at 0xc)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(16, 65537)),
              HasSubstr("number of heads: expected at most 65536, found 65537 (at 0x10)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(8, 65537)),
              HasSubstr("number of heads: they have 65537 dimensions each, expected at most 65536 (at 0x10)"));
  EXPECT_THAT(error_of(patched<std::int32_t>(28, 6)), HasSubstr("the file is cut off: it needs 520 bytes, has 504"));
  EXPECT_THAT(error_of(patched<std::int32_t>(28, 4)), HasSubstr("after the last array"));
  EXPECT_THAT(error_of(patched<std::int32_t>(20, 2147483647)), HasSubstr("the file is cut off"));
  EXPECT_THAT(error_of(patched(32, 1.5F)), HasSubstr("dropout rate: expected 0 to 1, found 1.5 (at 0x20)"));
  EXPECT_THAT(error_of(patched(32, std::numeric_limits<float>::quiet_NaN())), HasSubstr("dropout rate"));
}

TEST(TinyLlamaFile, DimensionsNameLayerAndMatrix) {
  const std::size_t query = 36 + 56 + 48;
  EXPECT_THAT(error_of(patched<std::uint64_t>(query, 3)),
              HasSubstr("layer 0: attention.query.weight: dimensions: expected [2, 2], found [3, 2]"));
  EXPECT_THAT(error_of(patched<std::uint64_t>(36, 1ULL << 62)),
              HasSubstr("embedding.weight: dimensions: expected [5, 2]"));
}

TEST(TinyLlamaFile, EveryTruncationIsAnError) {
  for (std::size_t size = 0; size < golden().size(); ++size) EXPECT_NE(error_of(golden().substr(0, size)), "") << size;
  EXPECT_THAT(error_of(golden() + "x"), HasSubstr("1 bytes after the last array"));
}

// A change in the header or dimensions is an error, except in the dropout rate. Values have no checksum.
TEST(TinyLlamaFile, EveryBitFlipIsAnErrorOrANumber) {
  for (std::size_t bit = 0; bit < 8 * golden().size(); ++bit) {
    std::string bytes = golden();
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const std::string error = error_of(bytes);
    EXPECT_TRUE(bit / 8 >= 32 || !error.empty()) << bit;
    // Writing a file waits for the disk, so only one for each byte is written.
    if (error.empty() && bit % 8 == bit / 8 % 8) {
      EXPECT_EQ(written(open(source(bytes))), bytes) << bit;
    }
  }
}

TEST(TinyLlamaFile, OtherModelsAreRefusedWithTheReason) {
  const auto refusal = [](const std::function<void(Model&)>& change) {
    Model model = open(source(golden()));
    change(model);
    try {
      written(model);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(refusal([](Model& model) { model.card.model_type = "mistral"; }),
              HasSubstr("the model_type is mistral, expected tiny_llama"));
  EXPECT_THAT(refusal([](Model& model) { model.config.reset(); }), HasSubstr("no configuration"));
  EXPECT_THAT(refusal([](Model& model) { model.config->num_hidden_layers = 2; }),
              HasSubstr("layers.1.attention.query.weight is missing"));
  EXPECT_THAT(refusal([](Model& model) { model.config->sliding_window = 7; }), HasSubstr("sliding_window is 7"));
  EXPECT_THAT(refusal([](Model& model) {
                model.add(make_dense("more", {1}, DType::f32, make_memory_blob(std::vector<std::byte>(4), "m")));
              }),
              HasSubstr("tensor more has no place in the file"));
  EXPECT_THAT(refusal([](Model& model) {
                model.config_json = Attributes{{"num_experts", 2}};
                model.config->num_hidden_layers = 2;  // whose tensors are missing
              }),
              HasSubstr("num_experts is 2, only 0 is supported"));
  const auto refusal_with = [&](const Attributes& changes) {
    return refusal([&](Model& model) { change_config(model, changes, "test"); });
  };
  EXPECT_THAT(refusal_with({{"sliding_window", 4}}), HasSubstr("sliding_window is 4"));
  EXPECT_THAT(refusal_with({{"num_attention_heads", 2}, {"num_key_value_heads", 1}}),
              HasSubstr("num_key_value_heads is 1"));
  EXPECT_THAT(refusal_with({{"head_dim", 4096}}), HasSubstr("head_dim is 4096"));
  EXPECT_EQ(refusal_with({{"sliding_window", Value()}, {"tie_word_embeddings", false}}), "");
}

TEST(TinyLlamaFile, NumbersThatItLacksAreLosses) {
  Model model = open(source(golden()));
  EXPECT_THAT(losses_of(model, kTinyLlamaFormat, {}), testing::IsEmpty());
  change_config(model, {{"rope_theta", 5}, {"initializer_range", 0.5}}, "test");
  EXPECT_THAT(losses_of(model, kTinyLlamaFormat, {}),
              testing::ElementsAre(HasSubstr("rope_theta (5)"), HasSubstr("initializer_range (0.5)")));
}

}  // namespace
}  // namespace poise
