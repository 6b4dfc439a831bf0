#include <poise/tiny_llama.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "support/directories.hpp"

namespace {

namespace fs = std::filesystem;
using poise::FileIOException;
using poise::ModelConfig;
using poise::TinyLlamaModel;
using testing::HasSubstr;

const ModelConfig kSmall{.model_dim = 8,
                         .num_layers = 2,
                         .num_heads = 2,
                         .ffn_hidden_dim = 12,
                         .max_seq_length = 16,
                         .vocab_size = 40,
                         .dropout = 0.1F};

class TinyLlamaApi : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("poise_tiny_" + std::to_string(std::random_device()()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static std::string content(const fs::path& path) { return poise::support::contents(path); }
  static void store(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  static std::string load_error(const fs::path& path, const ModelConfig& config = kSmall) {
    TinyLlamaModel model(config);
    const std::vector<poise::TokenId> tokens = {1, 5, 7};
    const std::vector<float> before = model.forward(tokens);
    try {
      model.load_model_weights(path);
    } catch (const FileIOException& error) {
      EXPECT_EQ(model.forward(tokens), before) << "a load that fails changes nothing";
      return error.what();
    }
    return {};
  }

  fs::path directory_;
};

// This is the example of the format's document, word by word.
TEST_F(TinyLlamaApi, TheDocumentsExample) {
  const fs::path here = fs::current_path();
  fs::current_path(directory_);
  {
    // Create and save model weights
    TinyLlamaModel model;
    model.save_model_weights("model_weights.bin");

    // Load weights into a new model
    TinyLlamaModel loaded_model;
    loaded_model.load_model_weights("model_weights.bin");
  }
  // 36 + (16 + 4 V D) + (16 + 4 S D) + 6 (4 (16 + 4 D D) + 2 (16 + 4 D F) + (8 + 4 F) + 5 (8 + 4 D)) + (16 + 4 D V)
  EXPECT_EQ(fs::file_size("model_weights.bin"), 208'778'164U);
  fs::current_path(here);
}

TEST_F(TinyLlamaApi, DefaultsAreThoseOfTheDocument) {
  const ModelConfig config;
  EXPECT_EQ(config, (ModelConfig{512, 6, 8, 2048, 1024, 32000, 0.1F}));
}

TEST_F(TinyLlamaApi, SavesTheRealWeightsAndLoadsThem) {
  const TinyLlamaModel model(kSmall);
  model.save_model_weights(directory_ / "a.bin");
  TinyLlamaModel other = TinyLlamaModel::from_file(directory_ / "a.bin");
  EXPECT_EQ(other.config(), kSmall);
  other.save_model_weights(directory_ / "b.bin");
  EXPECT_EQ(content(directory_ / "a.bin"), content(directory_ / "b.bin"));
  const std::vector<poise::TokenId> tokens = {2, 30, 4};
  EXPECT_EQ(other.forward(tokens), TinyLlamaModel(kSmall).forward(tokens));
  EXPECT_EQ(other.forward(tokens).size(), 3U * 40);
  EXPECT_LE(other.generate(tokens, 5).size(), 5U);
}

TEST_F(TinyLlamaApi, TheSixErrors) {
  const fs::path path = directory_ / "w.bin";
  TinyLlamaModel(kSmall).save_model_weights(path);
  const std::string good = content(path);
  EXPECT_THAT(load_error(directory_ / "absent.bin"), HasSubstr("absent.bin"));
  store(path, "XXXX" + good.substr(4));
  EXPECT_NE(load_error(path), "");
  store(path, good.substr(0, 4) + std::string(1, 2) + good.substr(5));
  EXPECT_THAT(load_error(path), HasSubstr("version: expected 1, found 2"));
  store(path, good);
  ModelConfig config = kSmall;
  config.num_layers = 3;
  config.dropout = 0.5F;
  EXPECT_THAT(
      load_error(path, config),
      HasSubstr(
          "configuration mismatch: number of layers: expected 3, found 2; dropout rate: expected 0.5, found 0.1"));
  std::string bent = good;
  const std::size_t key_of_layer_0 = 36 + (16 + 4 * 40 * 8) + (16 + 4 * 16 * 8) + (16 + 4 * 64);
  bent[key_of_layer_0] = 9;
  store(path, bent);
  EXPECT_THAT(load_error(path), HasSubstr("layer 0: attention.key.weight: dimensions: expected [8, 8], found [9, 8]"));
  store(path, good.substr(0, good.size() - 1));
  EXPECT_THAT(load_error(path), HasSubstr("the file is cut off"));
  store(path, good + "x");
  EXPECT_THAT(load_error(path), HasSubstr("after the last array"));
  EXPECT_THROW(TinyLlamaModel(kSmall).save_model_weights(directory_ / "no" / "such" / "folder.bin"), FileIOException);
  EXPECT_THROW(TinyLlamaModel::from_file(directory_), FileIOException);
}

TEST_F(TinyLlamaApi, ConfigurationsHaveToMakeSense) {
  ModelConfig config = kSmall;
  config.num_heads = 3;
  EXPECT_THROW(TinyLlamaModel{config}, poise::Error);
  config = kSmall;
  config.vocab_size = 0;
  EXPECT_THROW(TinyLlamaModel{config}, poise::Error);
}

TEST_F(TinyLlamaApi, TokensHaveToBeKnownAndFit) {
  TinyLlamaModel model(kSmall);
  EXPECT_THROW(model.forward(std::vector<poise::TokenId>{}), poise::Error);
  EXPECT_THROW(model.forward(std::vector<poise::TokenId>{40}), poise::Error);
  EXPECT_THROW(model.forward(std::vector<poise::TokenId>(17, 1)), poise::Error);
  EXPECT_THROW(model.generate("text"), poise::Error) << "there is no tokenizer";
}

TEST_F(TinyLlamaApi, TellsTheExamplesStory) {
  const fs::path example = poise::source_directory() / "examples/nano-tiny-llama";
  TinyLlamaModel model = TinyLlamaModel::from_file(example / "weights.tllm");
  model.load_tokenizer(example / "vocab.txt", example / "merges.txt");
  EXPECT_THAT(model.generate("Once upon a time, a little fox named Pip", 60), HasSubstr(" lived in "));
}

}  // namespace
