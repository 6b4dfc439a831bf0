// convert_lora() between PEFT's form and llama.cpp's. Names, alphas and places follow from the sources of PEFT 0.17 and
// of llama.cpp v0.5.0 (convert_lora_to_gguf.py, src/llama-adapter.cpp). tests/schemes/lora_extracts.py converts other
// families, and scripts/compare_llama_lora.py runs the files with llama.cpp.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/make_lora.hpp>
#include <poise/values.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr std::string_view kLlama = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 12,
  "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1, "vocab_size": 6,
  "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
  "tie_word_embeddings": TIED, "bos_token_id": 1, "eos_token_id": 2})";

constexpr std::string_view kGpt2 = R"({
  "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 1,
  "n_positions": 5, "vocab_size": 6, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"})";

// Numbers that differ everywhere.
std::vector<float> count_up(std::size_t count, float first) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<float>(i);
  return numbers;
}

class ConvertLora : public testing::Test {
 protected:
  ConvertLora() { write_base("false"); }

  void write_base(const std::string& tied) const {
    std::string config(kLlama);
    config.replace(config.find("TIED"), 4, tied);
    support::put(base(), config);
  }

  fs::path base() const { return directory_ / "base" / "config.json"; }

  // Writes a directory with thin matrices "lora_A.weight" and "lora_B.weight" of modules.
  void write_adapter(const std::string& config, const std::vector<Tensor>& tensors) const {
    Model model;
    for (Tensor tensor : tensors) {
      tensor.name = "base_model.model." + tensor.name;
      model.add(std::move(tensor));
    }
    fs::create_directories(peft());
    support::put(peft() / "adapter_config.json", config);
    save(model, peft() / "adapter_model.safetensors", "safetensors", {.overwrite = true});
  }

  fs::path peft() const { return directory_ / "peft"; }
  fs::path gguf() const { return directory_ / "lora.gguf"; }
  fs::path back() const { return directory_ / "back"; }

  ConvertLoraReport convert(const fs::path& from, const fs::path& to, const std::string& format = {}) const {
    return convert_lora(from, to, {.base = base(), .format = format, .write = {.overwrite = true}});
  }

  static std::vector<float> read(const fs::path& path, const std::string& name) {
    const Model model = open(path);
    const Tensor* tensor = model.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor == nullptr ? std::vector<float>() : values(*tensor);
  }

  static double read_alpha(const fs::path& path) {
    const Model model = open(path);
    return *model.attributes.get_if<double>("adapter.lora.alpha");
  }

  support::TemporaryDirectory directory_;
};

const std::vector<Tensor>& list_pairs() {
  static const std::vector<Tensor> pairs = {
      make_tensor("model.layers.0.self_attn.q_proj.lora_A.weight", {2, 8}, count_up(16, 100)),
      make_tensor("model.layers.0.self_attn.q_proj.lora_B.weight", {8, 2}, count_up(16, 0)),
      make_tensor("model.layers.0.mlp.down_proj.lora_A.weight", {2, 12}, count_up(24, 200)),
      make_tensor("model.layers.0.mlp.down_proj.lora_B.weight", {8, 2}, count_up(16, 300)),
      make_tensor("model.embed_tokens.lora_embedding_A", {2, 6}, count_up(12, 400)),
      make_tensor("model.embed_tokens.lora_embedding_B", {8, 2}, count_up(16, 500))};
  return pairs;
}

// A head has rows 0 1 2 3 as pairs of halves, and llama.cpp has them as neighbours: 0 2 1 3.
TEST_F(ConvertLora, GgufHasTheNamesPlacesAndOrderOfLlamaCpp) {
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", list_pairs());
  const ConvertLoraReport report = convert(peft(), gguf());
  EXPECT_EQ(report.format, "gguf");
  EXPECT_EQ(report.matrices, 3U);
  EXPECT_EQ(report.bytes_out, fs::file_size(gguf()));
  EXPECT_EQ(read_alpha(gguf()), 6);
  EXPECT_EQ(*open(gguf()).attributes.get_if<std::string>("adapter.type"), "lora");
  EXPECT_THAT(read(gguf(), "blk.0.attn_q.weight.lora_a"), ElementsAreArray(count_up(16, 100)));
  EXPECT_THAT(read(gguf(), "blk.0.attn_q.weight.lora_b"),
              ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  EXPECT_THAT(read(gguf(), "blk.0.ffn_down.weight.lora_b"), ElementsAreArray(count_up(16, 300)));
  // A of the embedding is transposed: a row for each token.
  EXPECT_THAT(read(gguf(), "token_embd.weight.lora_a"),
              ElementsAre(400, 406, 401, 407, 402, 408, 403, 409, 404, 410, 405, 411));
  EXPECT_THAT(read(gguf(), "token_embd.weight.lora_b"), ElementsAreArray(count_up(16, 500)));
}

TEST_F(ConvertLora, ThereAndBackIsTheSameAdapter) {
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", list_pairs());
  convert(peft(), gguf());
  convert(gguf(), back(), "huggingface");
  for (const Tensor& tensor : list_pairs()) {
    EXPECT_THAT(read(back() / "adapter_model.safetensors", "base_model.model." + tensor.name),
                ElementsAreArray(values(tensor)));
  }
  const Value config = parse_json(support::contents(back() / "adapter_config.json"), "config");
  const auto& keys = *config.get_if<Attributes>();
  EXPECT_EQ(*keys.find("r"), Value(std::uint64_t{2}));
  EXPECT_EQ(*keys.find("lora_alpha"), Value(std::uint64_t{6}));
  EXPECT_EQ(*keys.find("use_rslora"), Value(false));
  EXPECT_EQ(*keys.find("peft_type"), Value("LORA"));
  // The second trip has the same bytes as the first.
  const std::string first = support::contents(gguf());
  convert(back(), gguf());
  EXPECT_EQ(support::contents(gguf()), first);
}

// PEFT multiplies with alpha / r, or with alpha / sqrt(r) for rslora; llama.cpp with alpha / r.
TEST_F(ConvertLora, RsloraChangesAlpha) {
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, "use_rslora": true})", list_pairs());
  convert(peft(), gguf());
  EXPECT_FLOAT_EQ(static_cast<float>(read_alpha(gguf())), static_cast<float>(6 * std::sqrt(2.0)));
  EXPECT_THAT(read(gguf(), "blk.0.ffn_down.weight.lora_b"), ElementsAreArray(count_up(16, 300)));
}

TEST_F(ConvertLora, AlphaOfOneMatrixBecomesAFactorOfB) {
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, "alpha_pattern": {"down_proj": 3}})", list_pairs());
  convert(peft(), gguf());
  EXPECT_EQ(read_alpha(gguf()), 6);
  std::vector<float> halves = count_up(16, 300);
  for (float& number : halves) number /= 2;
  EXPECT_THAT(read(gguf(), "blk.0.ffn_down.weight.lora_b"), ElementsAreArray(halves));
  EXPECT_THAT(read(gguf(), "token_embd.weight.lora_b"), ElementsAreArray(count_up(16, 500)));
}

// A multimodal configuration: llama.cpp's file has the text model alone, under its own architecture.
TEST_F(ConvertLora, AMultimodalBaseMeansItsTextModel) {
  std::string text(kLlama);
  text.replace(text.find("TIED"), 4, "false");
  text.replace(text.find("\"llama\""), 7, "\"mistral\"");
  support::put(base(), R"({"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"],
                           "vision_config": {"hidden_size": 8}, "text_config": )" +
                           text + "}");
  std::vector<Tensor> pairs = list_pairs();
  for (Tensor& tensor : pairs) tensor.name = "language_model." + tensor.name;
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", pairs);
  convert(peft(), gguf());
  EXPECT_EQ(open(gguf()).card.model_type, "llama");
  EXPECT_THAT(read(gguf(), "blk.0.ffn_down.weight.lora_a"), ElementsAreArray(count_up(24, 200)));
  EXPECT_THAT(read(gguf(), "blk.0.attn_q.weight.lora_b"),
              ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
}

// PEFT has learned positions as an embedding, whose matrices are those of the transposed change.
TEST_F(ConvertLora, LearnedPositionsAreAnEmbeddingInPeft) {
  support::put(base(), kGpt2);
  Model model;
  model.card.model_type = "gpt2";
  model.attributes = {{"general.type", "adapter"}, {"adapter.type", "lora"}, {"adapter.lora.alpha", 2.0}};
  model.add(make_tensor("position_embd.weight.lora_a", {2, 8}, count_up(16, 0)));
  model.add(make_tensor("position_embd.weight.lora_b", {5, 2}, count_up(10, 50)));
  save(model, gguf(), "gguf");
  convert(gguf(), back(), "huggingface");
  const fs::path file = back() / "adapter_model.safetensors";
  EXPECT_THAT(read(file, "base_model.model.transformer.wpe.lora_embedding_A"),
              ElementsAre(50, 52, 54, 56, 58, 51, 53, 55, 57, 59));
  EXPECT_THAT(read(file, "base_model.model.transformer.wpe.lora_embedding_B"),
              ElementsAre(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
}

class ConvertLoraErrors : public ConvertLora {
 protected:
  void expect(ErrorKind kind, const fs::path& from, const fs::path& to, const char* text) const {
    const Error error = support::error_of([&] { convert(from, to, to.has_extension() ? "" : "huggingface"); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_FALSE(fs::exists(to));
  }
  void expect(ErrorKind kind, const char* text) const { expect(kind, peft(), gguf(), text); }
};

// llama.cpp looks the output matrix up by the embedding's name, and stops because its thin matrices are transposed.
TEST_F(ConvertLoraErrors, LlamaCppHasNoAdapterOfATiedEmbedding) {
  write_base("true");
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", list_pairs());
  expect(ErrorKind::unsupported,
         "the adapter changes model.embed_tokens.weight, which is the output matrix, too, in this base");
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})",
                {make_tensor("lm_head.lora_A.weight", {2, 8}, count_up(16, 1)),
                 make_tensor("lm_head.lora_B.weight", {6, 2}, count_up(12, 1))});
  expect(ErrorKind::unsupported, "which is the embedding in this base");
}

// llama.cpp loads such an adapter, and reads rows of the positions without it.
TEST_F(ConvertLoraErrors, LlamaCppHasNoAdapterOfLearnedPositions) {
  support::put(base(), kGpt2);
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})",
                {make_tensor("transformer.wpe.lora_embedding_A", {2, 5}, count_up(10, 1)),
                 make_tensor("transformer.wpe.lora_embedding_B", {8, 2}, count_up(16, 1))});
  expect(ErrorKind::unsupported, "transformer.wpe.weight, learned positions: llama.cpp adds no adapter to them");
}

TEST_F(ConvertLoraErrors, RefusesOtherKindsAndForms) {
  const std::vector<Tensor> one = {
      make_tensor("model.layers.0.mlp.down_proj.lora_A.weight", {2, 12}, count_up(24, 200)),
      make_tensor("model.layers.0.mlp.down_proj.lora_B.weight", {8, 2}, count_up(16, 300))};
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, "use_dora": true})", one);
  expect(ErrorKind::unsupported, "use_dora");
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", {one[0]});
  expect(ErrorKind::invalid_file, "down_proj");
  std::vector<Tensor> with_norm = one;
  with_norm.push_back(make_tensor("model.norm.weight", {8}, count_up(8, 1)));
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", with_norm);
  expect(ErrorKind::unsupported, "whole tensors");
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", one);
  expect(ErrorKind::bad_argument, peft(), back(), "already");
  const Error error = support::error_of([&] { convert_lora(peft(), gguf()); });
  EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
  EXPECT_THAT(error.what(), HasSubstr("name the model, or its config.json"));
}

TEST_F(ConvertLora, ADryRunWritesNoFile) {
  write_adapter(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6})", list_pairs());
  const ConvertLoraReport report = convert_lora(peft(), gguf(), {.base = base(), .dry_run = true});
  EXPECT_TRUE(report.output.empty());
  EXPECT_EQ(report.matrices, 3U);
  EXPECT_FALSE(fs::exists(gguf()));
}

}  // namespace
}  // namespace poise
