// Broken files give an error or a model, and random models are read back as they were written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>

#include <poise/dtype.hpp>

#include "formats/alt/alt_files.hpp"
#include "formats/alt/file_builder.hpp"
#include "formats/registry.hpp"
#include "support/directories.hpp"
#include "tokenizer/sentencepiece/model.hpp"

namespace poise {
namespace {

// Reads a broken file and every byte of its tensors. The result is an invalid_file error, or a model.
void survive(std::vector<std::byte> bytes) {
  try {
    const Model model = read(std::move(bytes));
    for (const Tensor& tensor : model.tensors()) read_all(*tensor.require("data").blob);
  } catch (const Error& error) {
    ASSERT_TRUE(error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported) << error.what();
  }
}

std::vector<std::vector<std::byte>> small_files() {
  FileBuilder alt_c;
  alt_c.sizes = FileBuilder::Sizes::fields_without_ids;
  alt_c.alt_c_parameters = alt_c.alt_c_tokens = alt_c.alt_c_types = true;
  alt_c.seq_len = alt_c.tensors = false;
  return {read_annotated_hex("formats/alt/v1.hex"), read_annotated_hex("formats/alt/v2.hex"), alt_c.v2()};
}

TEST(AltRobustness, EveryTruncationIsAnError) {
  for (const auto& whole : small_files()) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      if (size % 32 == 4 && size + 4 == whole.size()) continue;  // half of the end marker, which some programs write
      const Error error = error_of([&] { read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}); });
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << size << ": " << error.what();
    }
  }
}

TEST(AltRobustness, EveryFlippedBitIsAnErrorOrHarmless) {
  for (const auto& whole : small_files()) {
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      auto bytes = whole;
      bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      survive(std::move(bytes));
    }
  }
}

TEST(AltRobustness, RandomNumbersInPlaceOfFieldsAreErrorsOrHarmless) {
  std::mt19937 random(1);
  const auto files = small_files();
  for (int round = 0; round < 20000; ++round) {
    auto bytes = files[static_cast<std::size_t>(round) % files.size()];
    const std::size_t at = random() % (bytes.size() - 4);
    const std::uint32_t numbers[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, static_cast<std::uint32_t>(random())};
    std::memcpy(bytes.data() + at, &numbers[random() % 6], 4);
    survive(std::move(bytes));
  }
}

class RandomModel {
 public:
  explicit RandomModel(unsigned seed) : random_(seed) {}

  Model make() {
    Model model;
    if (chance()) model.card = {text(), text(), text(), "2024-07-05", text(), text(), text()};
    if (chance()) model.config = config();
    if (chance()) model.vocabulary = vocabulary();
    static constexpr const char* kNames[] = {"lm_head.weight",
                                             "model.layers.3.mlp.up_proj.weight",
                                             "model.norm.weight",
                                             "model.layers.0.input_layernorm.weight",
                                             "model.layers.0.odd",
                                             "model.embed_tokens.weight",
                                             "x",
                                             "\xc3\xa4\xe2\x96\x81"};
    for (const char* name : kNames) {
      if (chance()) model.add(tensor(name));
    }
    // Reading reports an unused output matrix.
    if (model.config && model.find("lm_head.weight") != nullptr) model.config->tie_word_embeddings = false;
    return model;
  }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_()) % limit; }
  bool chance() { return below(2) == 0; }
  std::int32_t number() { return static_cast<std::int32_t>(below(100000)); }

  std::string text() {
    static constexpr const char* kPieces[] = {"a", "", "\xe2\x96\x81", "\xf0\x9f\x99\x82", "Z9", "\n", "\xc3\xa9"};
    std::string result;
    for (unsigned i = below(4); i > 0; --i) result += kPieces[below(std::size(kPieces))];
    return result;
  }

  Config config() {
    Config config;
    config.hidden_act = text();
    config.tie_word_embeddings = chance();
    config.hidden_size = number();
    config.intermediate_size = number();
    config.max_position_embeddings = number();
    config.num_attention_heads = number();
    config.num_hidden_layers = number();
    config.num_key_value_heads = number();
    config.head_dim = number() % 65536 + 1;
    config.sliding_window = number();
    config.rope_theta = static_cast<float>(number() + 1);
    config.rms_norm_eps = 1e-6F;
    config.initializer_range = 0;
    return config;
  }

  Vocabulary vocabulary() {
    Vocabulary vocabulary;
    vocabulary.unk_id = 0;
    vocabulary.max_length = number();
    vocabulary.add("<unk>", 0, TokenType::unknown);
    for (unsigned i = below(30); i > 0; --i)
      vocabulary.add(i == 1 ? "" : text() + std::to_string(i), static_cast<float>(number()) / 7,
                     static_cast<TokenType>(below(9)));
    return vocabulary;
  }

  Tensor tensor(const char* name) {
    Shape shape;
    for (unsigned rank = below(4); rank > 0; --rank) shape.push_back(below(6));
    static constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::qint8, DType::qint4};
    const DType dtype = kTypes[below(5)];
    std::vector<std::byte> data(*packed_bytes(dtype, *element_count(shape)));
    for (std::byte& byte : data) byte = static_cast<std::byte>(below(256));
    if (dtype == DType::qint4 && *element_count(shape) % 2 != 0) data.back() &= std::byte{0x0f};
    Tensor tensor = make_dense(name, shape, dtype, make_memory_blob(std::move(data), name));
    if (info(dtype).kind == DTypeKind::quantized) {
      const float low = chance() ? -1.5F : 0;
      tensor.layout = make_affine({0.25F, low, low < 0 ? 2.0F : 0.0F, dtype == DType::qint4});
    }
    return tensor;
  }

  std::mt19937 random_;
};

void expect_same_tensors(const Model& a, const Model& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const Tensor& tensor : a.tensors()) {
    const Tensor* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape);
    EXPECT_EQ(tensor.layout, other->layout);
    EXPECT_EQ(tensor.require("data").dtype, other->require("data").dtype);
    EXPECT_EQ(read_all(*tensor.require("data").blob), read_all(*other->require("data").blob));
    EXPECT_EQ(tensor.layout.affine() != nullptr ? tensor.layout.affine()->get() : Affine{},
              other->layout.affine() != nullptr ? other->layout.affine()->get() : Affine{});
  }
}

TEST(AltRobustness, WarningsShowTheBeginningOfALongName) {
  const std::string name(5000, 'x');
  Model model;
  model.add(make_dense(name, {1}, DType::f32, make_memory_blob(std::vector<std::byte>(4), "x")));
  std::vector<std::byte> bytes = written(model, kAltV2);
  constexpr std::ptrdiff_t kBeforeName = 16 + 4 + 4 + 4;  // the hints, n_dims, one dimension, the length
  const auto text = std::as_bytes(std::span(name));
  const auto found = std::search(bytes.begin(), bytes.end(), text.begin(), text.end());
  *(found - kBeforeName) = std::byte{0};  // component_type
  const Model reread = read(bytes);
  ASSERT_EQ(reread.warnings.size(), 1U);
  EXPECT_THAT(reread.warnings[0].message, testing::HasSubstr("component_type"));
  EXPECT_LT(reread.warnings[0].message.size(), 250U);
}

TEST(AltRobustness, WrittenModelsAreReadBack) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed).make();
    const auto bytes = written(model, kAltV2);
    const Model reread = read(bytes);
    const Tensor* embedding = model.find("model.embed_tokens.weight");
    const bool has_tokens_without_rows = model.vocabulary && embedding != nullptr && embedding->shape.size() == 2 &&
                                         model.vocabulary->size() > embedding->shape[0];
    ASSERT_EQ(reread.warnings.size(), has_tokens_without_rows ? 1U : 0U);
    if (has_tokens_without_rows) {
      EXPECT_THAT(reread.warnings.front().message, testing::HasSubstr("tokens, but model.embed_tokens.weight only"));
    }
    EXPECT_EQ(reread.card, model.card);
    EXPECT_EQ(reread.vocabulary, model.vocabulary);
    auto config = reread.config;
    if (config) config->vocab_size = 0;  // not stored
    EXPECT_EQ(config, model.config);
    expect_same_tensors(model, reread);
    EXPECT_EQ(written(reread, kAltV2), bytes);
  }
}

TEST(AltRobustness, ItIsReadTheSameWithoutAMapping) {
  const auto path = std::filesystem::temp_directory_path() / ("poise_alt_" + std::to_string(::getpid()) + ".alt");
  for (const auto& bytes : small_files()) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const Model mapped = open(path);
    const Model copied = open(path, {.io = IoMode::read});
    expect_same_tensors(mapped, copied);
    EXPECT_EQ(mapped.vocabulary, copied.vocabulary);
    EXPECT_EQ(mapped.config, copied.config);
    EXPECT_EQ(mapped.warnings.size(), copied.warnings.size());
  }
  std::filesystem::remove(path);
}

// The specification's own example: the tokens "hello", "world" and "!", with the right lengths, size and padding.
TEST(AltRobustness, TheWorkedTokenizerExample) {
  Model model;
  model.vocabulary.emplace();
  model.vocabulary->add("hello", 0.5F, TokenType::normal);
  model.vocabulary->add("world", 0.8F, TokenType::normal);
  model.vocabulary->add("!", -1.0F, TokenType::normal);
  const auto file = written(model, kAltV2);
  const auto section = read_annotated_hex("formats/alt/tokenizer_example.hex");
  const auto found = std::search(file.begin(), file.end(), section.begin(), section.begin() + 8);
  ASSERT_GE(static_cast<std::size_t>(file.end() - found), section.size());
  EXPECT_TRUE(std::equal(section.begin(), section.end(), found));
}

TEST(AltRobustness, TheVocabularyOfMistralSurvives) {
  const std::filesystem::path path = shared_directory() / "data/mistral-7b-v0.1/tokenizer.model";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  Model model;
  model.vocabulary = read_sentencepiece(*Source::open(path));
  ASSERT_EQ(model.vocabulary->size(), 32000U);
  const Model reread = read(written(model, kAltV2));
  ASSERT_EQ(reread.vocabulary->size(), 32000U);
  for (std::size_t id = 0; id < 32000; ++id) {
    ASSERT_EQ(reread.vocabulary->text(id), model.vocabulary->text(id));
    ASSERT_EQ(reread.vocabulary->score(id), model.vocabulary->score(id));
    ASSERT_EQ(reread.vocabulary->type(id), model.vocabulary->type(id));
  }
  const Model model_v1 = read(written(model, kAltV1));
  for (std::size_t id = 0; id < 32000; ++id) ASSERT_EQ(model_v1.vocabulary->text(id), model.vocabulary->text(id));
}

}  // namespace
}  // namespace poise
