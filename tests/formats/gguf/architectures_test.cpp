// The changes of llama.cpp's conversion for each architecture, both ways. Files are put together from the GGUF
// specification of ggml; names and keys are those of llama.cpp's conversion/ (v0.5.0). scripts/compare_llama_cpp.py
// compares whole models with llama.cpp itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/config_json.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "formats/format.hpp"
#include "formats/gguf/gguf_file.hpp"
#include "formats/registry.hpp"
#include "ops/transform/transform.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Model read(const std::string& bytes) { return open(support::source(bytes, "test.gguf")); }
Model read_again(const Model& model) { return read(support::to_string(support::written(model, kGguf))); }

std::string floats(const std::vector<float>& numbers) { return support::elements(numbers); }

std::string bytes_of(const Model& model, std::string_view name) {
  const Tensor* tensor = model.find(name);
  return tensor == nullptr ? "no such tensor" : support::to_string(read_all(*tensor->require("data").blob));
}

// Returns the data of a tensor in a file, found by another reader: names that no architecture has stay.
std::string stored(const Model& model, std::string_view name) {
  std::string file = support::to_string(support::written(model, kGguf));
  const std::string key = text("general.architecture");
  const std::size_t at = file.find(key) + key.size() + 4 + 8;
  file[at] = '?';
  return bytes_of(read(file), name);
}

// Returns the stored form of numbers that the reader changed. Null: they are as in the file.
const StoredAs* stored_as(const Model& model, std::string_view name) {
  return model.find(name)->require("data").blob->stored_as();
}

// Makes the metadata of a minimal file of an architecture.
std::vector<Entry> entries(const std::string& name, const std::vector<Entry>& more = {}) {
  std::vector<Entry> all = {text_entry("general.architecture", name),    u32_entry(name + ".context_length", 64),
                            u32_entry(name + ".embedding_length", 8),    u32_entry(name + ".block_count", 2),
                            u32_entry(name + ".feed_forward_length", 4), u32_entry(name + ".attention.head_count", 2)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Model model_of(const std::string& config, const std::string& model_type) {
  Model model;
  model.card.model_type = model_type;
  parse_config(model, *parse_json(config, "config.json").get_if<Attributes>(), "config.json");
  return model;
}

// Returns the bytes after a key and its type in the written file; std::nullopt without the key.
std::optional<std::uint32_t> bits_of(const Model& model, const std::string& name, std::uint32_t type) {
  const std::string file = support::to_string(support::written(model, kGguf));
  const std::string key = text(name) + number(type, 4);
  const std::size_t at = file.find(key);
  if (at == std::string::npos) return std::nullopt;
  std::uint32_t found = 0;
  std::memcpy(&found, file.data() + at + key.size(), sizeof found);
  return found;
}
std::optional<std::uint32_t> number_of(const Model& model, const std::string& name) {
  return bits_of(model, name, kU32);
}
// Returns 0 without the key.
float float_of(const Model& model, const std::string& name) {
  return std::bit_cast<float>(bits_of(model, name, kF32).value_or(0));
}

constexpr auto kPhi3Part =
    R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "partial_rotary_factor": 0.5})";

constexpr std::string_view kNoVocabulary = "llama.cpp runs the file with token ids only: the model has no vocabulary";

// Returns the losses, without that of the vocabulary, which these models lack.
std::vector<std::string> losses(const Model& model) {
  std::vector<std::string> all = losses_of(model, kGguf, {});
  std::erase(all, kNoVocabulary);
  return all;
}

TEST(GgufArchitectures, AModelWithoutVocabularyHasNoTokensForLlamaCpp) {
  Model model = model_of(
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "max_position_embeddings": 64})",
      "llama");
  EXPECT_THAT(losses_of(model, kGguf, {}), ElementsAre(kNoVocabulary));
  model.vocabulary.emplace();
  EXPECT_THAT(losses_of(model, kGguf, {}), testing::Not(Contains(kNoVocabulary)));
}

// transformers 5 writes another key for the number of experts.
TEST(GgufArchitectures, Qwen3MoeCountsItsExpertsByEitherKey) {
  for (const char* keys :
       {R"("num_experts": 4)", R"("num_local_experts": 4)", R"("num_experts": 4, "num_local_experts": 4)"}) {
    const Model model = model_of(
        R"({"hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 4, "head_dim": 4,
        "moe_intermediate_size": 4, "num_experts_per_tok": 2, "vocab_size": 8, "max_position_embeddings": 64, )" +
            std::string(keys) + "}",
        "qwen3_moe");
    EXPECT_THAT(check_config(make_config_view(model), find_family_or_llama(model)), IsEmpty()) << keys;
    EXPECT_EQ(find_family_or_llama(model).plan(make_config_view(model)).experts->count, 4U) << keys;
    const std::string file = support::to_string(support::written(model, kGguf));
    const std::size_t at = file.find(text("qwen3moe.expert_count"));
    ASSERT_NE(at, std::string::npos) << keys;
    EXPECT_EQ(file.find(text("qwen3moe.expert_count"), at + 1), std::string::npos) << keys;
  }
}

// 0.3 - 1 is not an exact float32, but the written file has the original bytes.
TEST(GgufArchitectures, NormsOfGemmaAreStoredPlusOne) {
  const std::string norm = floats({1.5F, 0.3F, 1.0F, -2, 1, 1, 1, 1});
  const Model model = read(
      file_of(entries("gemma2"), {{"output_norm.weight", {8}, 0, norm}, {"blk.1.post_ffw_norm.weight", {8}, 0, norm}})
          .bytes());
  EXPECT_THAT(values(*model.find("model.norm.weight")), ElementsAre(0.5F, 0.3F - 1, 0, -3, 0, 0, 0, 0));
  EXPECT_THAT(values(*model.find("model.layers.1.post_feedforward_layernorm.weight")),
              ElementsAre(0.5F, 0.3F - 1, 0, -3, 0, 0, 0, 0));
  EXPECT_EQ(stored(model, "output_norm.weight"), norm);
  const StoredAs* const as = stored_as(model, "model.norm.weight");
  ASSERT_NE(as, nullptr);
  EXPECT_EQ(as->change, StoredAs::Change::one_added);
  EXPECT_EQ(support::to_string(read_all(*as->blob)), norm);

  Model other = model_of(
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4})", "gemma");
  other.add(make_dense("model.norm.weight", {2}, DType::bf16,
                       make_memory_blob(support::to_bytes(std::string("\x80\x3e\x00\xbf", 4)), "norm")));
  EXPECT_EQ(stored(other, "output_norm.weight"), floats({1.25F, 0.5F}));
  EXPECT_THAT(values(*read_again(other).find("model.norm.weight")), ElementsAre(0.25F, -0.5F));
}

// Reads pieces that begin and end inside numbers.
TEST(GgufArchitectures, PiecesOfNormsAreThoseOfTheWhole) {
  std::vector<float> numbers(3000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) / 64;
  const Model model = read(file_of(entries("gemma"), {{"output_norm.weight", {3000}, 0, floats(numbers)}}).bytes());
  const BlobPtr blob = model.find("model.norm.weight")->require("data").blob;
  const std::string whole = support::to_string(read_all(*blob));
  for (const auto& [begin, count] :
       {std::pair<std::size_t, std::size_t>{0, 1}, {3, 2}, {5, 9000}, {4094, 5}, {11999, 1}}) {
    std::vector<std::byte> piece(count);
    blob->read(begin, piece);
    EXPECT_EQ(support::to_string(piece), whole.substr(begin, count)) << begin;
  }
}

const std::vector<Entry> kTwoExperts = {u32_entry("llama.expert_count", 2), u32_entry("llama.expert_used_count", 1)};

TEST(GgufArchitectures, StackedExpertsAreTensorsOfTheirOwn) {
  std::vector<float> stack(2 * 4 * 8);
  for (std::size_t i = 0; i < stack.size(); ++i) stack[i] = static_cast<float>(i);
  const Model model =
      read(file_of(entries("llama", kTwoExperts), {{"blk.1.ffn_gate_exps.weight", {8, 4, 2}, 0, floats(stack)},
                                                   {"blk.1.ffn_down_exps.weight", {4, 8, 2}, 0, floats(stack)},
                                                   {"blk.1.ffn_gate_inp.weight", {8, 2}, 0, std::string(64, 'r')}})
               .bytes());
  EXPECT_EQ(model.card.model_type, "mixtral");
  EXPECT_EQ(*model.config_json.find("num_local_experts"), Value(2));
  EXPECT_EQ(model.size(), 5U);
  EXPECT_EQ(model.find_in_file("blk.1.ffn_gate_exps.weight").size(), 2U);
  EXPECT_EQ(model.find("model.layers.1.block_sparse_moe.gate.weight")->name_in_file(), "blk.1.ffn_gate_inp.weight");
  EXPECT_EQ(model.find("model.layers.1.block_sparse_moe.experts.1.w1.weight")->shape, (Shape{4, 8}));
  EXPECT_EQ(model.find("model.layers.1.block_sparse_moe.experts.1.w2.weight")->shape, (Shape{8, 4}));
  EXPECT_EQ(bytes_of(model, "model.layers.1.block_sparse_moe.experts.0.w1.weight"),
            floats({stack.begin(), stack.begin() + 32}));
  EXPECT_EQ(bytes_of(model, "model.layers.1.block_sparse_moe.experts.1.w1.weight"),
            floats({stack.begin() + 32, stack.end()}));
  EXPECT_EQ(bytes_of(model, "model.layers.1.block_sparse_moe.gate.weight"), std::string(64, 'r'));
  EXPECT_EQ(stored(model, "blk.1.ffn_gate_exps.weight"), floats(stack));
  EXPECT_EQ(stored(model, "blk.1.ffn_gate_inp.weight"), std::string(64, 'r'));
}

// llama.cpp wrote such files before April 2024. The experts are stacked when they are written again.
TEST(GgufArchitectures, ExpertsMayHaveTensorsOfTheirOwn) {
  const std::string first = floats(std::vector<float>(32, 1));
  const std::string second = floats(std::vector<float>(32, 2));
  const Model model = read(file_of(entries("llama", kTwoExperts), {{"blk.1.ffn_gate.0.weight", {8, 4}, 0, first},
                                                                   {"blk.1.ffn_gate.1.weight", {8, 4}, 0, second},
                                                                   {"blk.1.ffn_down.1.weight", {4, 8}, 0, second},
                                                                   {"blk.1.ffn_down.0.weight", {4, 8}, 0, first},
                                                                   {"blk.1.ffn_up.0.weight", {8, 4}, 0, first},
                                                                   {"blk.1.ffn_up.1.weight", {8, 4}, 0, second}})
                               .bytes());
  EXPECT_EQ(model.card.model_type, "mixtral");
  EXPECT_EQ(bytes_of(model, "model.layers.1.block_sparse_moe.experts.1.w1.weight"), second);
  EXPECT_EQ(bytes_of(model, "model.layers.1.block_sparse_moe.experts.0.w2.weight"), first);
  EXPECT_EQ(model.find("model.layers.1.block_sparse_moe.experts.1.w3.weight")->shape, (Shape{4, 8}));
  EXPECT_EQ(stored(model, "blk.1.ffn_down_exps.weight"), first + second);
}

TEST(GgufArchitectures, ExpertsOfBlocksStayBlocks) {
  const std::string first(34 * 2, 'a');
  const std::string second(34 * 2, 'b');
  const Model model = read(file_of(entries("qwen3moe", {u32_entry("qwen3moe.expert_count", 2)}),
                                   {{"blk.0.ffn_up_exps.weight", {32, 2, 2}, 8, first + second}})
                               .bytes());
  EXPECT_EQ(model.card.model_type, "qwen3_moe");
  const Tensor* expert = model.find("model.layers.0.mlp.experts.1.up_proj.weight");
  ASSERT_NE(expert, nullptr);
  EXPECT_EQ(expert->layout.name(), "gguf.q8_0/1");
  EXPECT_EQ(bytes_of(model, expert->name), second);
  EXPECT_EQ(stored(model, "blk.0.ffn_up_exps.weight"), first + second);
}

constexpr auto kTwoExpertsOfQwen =
    R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "num_experts": 2, "moe_intermediate_size": 2})";

TEST(GgufArchitectures, ExpertsThatDoNotStackAreRefused) {
  const auto refusal = [](DType second, std::string_view number) {
    Model model = model_of(kTwoExpertsOfQwen, "qwen3_moe");
    model.add(make_dense("model.layers.0.mlp.experts.0.up_proj.weight", {1, 2}, DType::f32,
                         make_memory_blob(std::vector<std::byte>(8), "0")));
    model.add(make_dense(std::string("model.layers.0.mlp.experts.").append(number).append(".up_proj.weight"),
                         {1, second == DType::f32 ? 2U : 4U}, second,
                         make_memory_blob(std::vector<std::byte>(8), "1")));
    const Error error = support::error_of([&] { support::written(model, kGguf); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    return error.message();
  };
  EXPECT_THAT(
      refusal(DType::f16, "1"),
      HasSubstr(
          "blk.0.ffn_up_exps.weight: expert 1 is f16 [1, 4], and expert 0 is f32 [1, 2]; all experts need one shape"));
  EXPECT_THAT(refusal(DType::f32, "2"), HasSubstr("expert 1 is missing"));
  EXPECT_THAT(refusal(DType::f32, "18446744073709551615"), HasSubstr("expert 1 is missing"));
}

TEST(GgufArchitectures, MissingExpertsAreRefused) {
  Model model = model_of(kTwoExpertsOfQwen, "qwen3_moe");
  model.vocabulary.emplace();
  model.add(make_dense("model.layers.0.mlp.experts.0.up_proj.weight", {1, 2}, DType::f32,
                       make_memory_blob(std::vector<std::byte>(8), "0")));
  EXPECT_THAT(support::error_of([&] { support::written(model, kGguf); }).message(),
              HasSubstr("llama.cpp could not run the file: it loads all experts of a layer as one tensor, but a layer "
                        "has 1 of 2 experts. zt, safetensors and huggingface hold the model"));
  model.add(make_dense("model.layers.0.mlp.experts.1.up_proj.weight", {1, 2}, DType::f32,
                       make_memory_blob(std::vector<std::byte>(8), "1")));
  EXPECT_THAT(losses_of(model, kGguf, {}), testing::Not(Contains(HasSubstr("experts"))));
}

// A file of another program is written as it is, with a warning.
TEST(GgufArchitectures, MissingExpertsOfGgufFilesAreReported) {
  const auto losses_with = [](std::uint32_t experts) {
    return losses(read(file_of(entries("llama", {u32_entry("llama.expert_count", experts)}),
                               {{"blk.1.ffn_up_exps.weight", {8, 4, 2}, 0, floats(std::vector<float>(64))}})
                           .bytes()));
  };
  EXPECT_THAT(losses_with(4), Contains("llama.cpp will not load the file: a layer has 2 of 4 experts"));
  EXPECT_THAT(losses_with(2), testing::Not(Contains(HasSubstr("experts"))));
}

// The tensors are not in the order of their numbers.
TEST(GgufArchitectures, ExpertsAreStackedByTheirNumbers) {
  Model model = model_of(kTwoExpertsOfQwen, "qwen3_moe");
  for (const char* number : {"1", "0"}) {
    model.add(make_dense(std::string("model.layers.0.mlp.experts.") + number + ".up_proj.weight", {2, 8}, DType::i8,
                         make_memory_blob(support::to_bytes(std::string(16, *number)), number)));
  }
  EXPECT_EQ(stored(model, "blk.0.ffn_up_exps.weight"), std::string(16, '0') + std::string(16, '1'));
}

TEST(GgufArchitectures, MatricesOfGpt2AreTransposed) {
  // 2 x 3 in the file, as [out, in].
  const Model model = read(file_of(entries("gpt2"), {{"blk.0.attn_qkv.weight", {3, 2}, 0, floats({1, 2, 3, 4, 5, 6})},
                                                     {"blk.0.attn_qkv.bias", {2}, 0, floats({7, 8})},
                                                     {"blk.0.ffn_up.weight", {3, 2}, 1, std::string("a1b2c3d4e5f6")},
                                                     {"position_embd.weight", {2, 1}, 0, floats({9, 10})}})
                               .bytes());
  EXPECT_EQ(model.find("transformer.h.0.attn.c_attn.weight")->shape, (Shape{3, 2}));
  EXPECT_THAT(values(*model.find("transformer.h.0.attn.c_attn.weight")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(bytes_of(model, "transformer.h.0.mlp.c_fc.weight"), "a1d4b2e5c3f6");
  EXPECT_THAT(values(*model.find("transformer.h.0.attn.c_attn.bias")), ElementsAre(7, 8));
  EXPECT_THAT(values(*model.find("transformer.wpe.weight")), ElementsAre(9, 10));
  EXPECT_EQ(*model.config_json.find("n_embd"), Value(8));
  EXPECT_EQ(stored(model, "blk.0.attn_qkv.weight"), floats({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(stored(model, "blk.0.ffn_up.weight"), "a1b2c3d4e5f6");
  const StoredAs* const as = stored_as(model, "transformer.h.0.mlp.c_fc.weight");
  ASSERT_NE(as, nullptr);
  EXPECT_EQ(as->change, StoredAs::Change::transposed);
  EXPECT_EQ(as->row_bytes, 6U);
  EXPECT_EQ(support::to_string(read_all(*as->blob)), "a1b2c3d4e5f6");
  EXPECT_EQ(stored_as(model, "transformer.h.0.attn.c_attn.bias"), nullptr);
}

// There are two heads of queries and one of keys, with four rows each.
TEST(GgufArchitectures, RowsOfLlamaAreInterleavedByHead) {
  const std::string queries = "a1b2c3d4e5f6g7h8";
  const Model model = read(file_of(entries("llama", {u32_entry("llama.attention.head_count_kv", 1)}),
                                   {{"blk.0.attn_q.weight", {1, 8}, 1, queries},
                                    {"blk.0.attn_k.weight", {1, 4}, 1, std::string("i1j2k3l4")},
                                    {"blk.0.attn_v.weight", {1, 4}, 1, std::string("m1n2o3p4")}})
                               .bytes());
  EXPECT_EQ(bytes_of(model, "model.layers.0.self_attn.q_proj.weight"), "a1c3b2d4e5g7f6h8");
  const StoredAs* const as = stored_as(model, "model.layers.0.self_attn.q_proj.weight");
  ASSERT_NE(as, nullptr);
  EXPECT_EQ(as->change, StoredAs::Change::rows_interleaved);
  EXPECT_EQ(as->head_rows, 4U);
  EXPECT_EQ(as->row_bytes, 2U);
  EXPECT_EQ(support::to_string(read_all(*as->blob)), queries);
  EXPECT_EQ(bytes_of(model, "model.layers.0.self_attn.k_proj.weight"), "i1k3j2l4");
  EXPECT_EQ(stored_as(model, "model.layers.0.self_attn.k_proj.weight")->head_rows, 4U);
  EXPECT_EQ(stored_as(model, "model.layers.0.self_attn.v_proj.weight"), nullptr);
  EXPECT_EQ(stored(model, "blk.0.attn_q.weight"), queries);
}

// A conversion keeps the stored form only of tensors that it does not change.
TEST(GgufArchitectures, ComputedNumbersAreNotStored) {
  const std::string row = floats({1, 2, 3, 4});
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const Model model =
      read(file_of(entries("llama"), {{"blk.0.attn_q.weight", {4, 4}, 0, row + row + row + row}}).bytes());
  const auto change = [&](const ConvertOptions& options) {
    return stored_as(transform(model, find_format_by_name("alt"), options).model, name);
  };
  ASSERT_NE(stored_as(model, name), nullptr);
  EXPECT_EQ(change({}), stored_as(model, name));
  EXPECT_EQ(change({.dtype = DType::f16}), nullptr);
  EXPECT_EQ(change({.quantize = StoredType{.dtype = DType::qint8}}), nullptr);
}

// Blocks keep their bytes, and run along columns.
TEST(GgufArchitectures, BlocksOfTransposedMatricesStay) {
  const std::string block = std::string("\x00\x3c", 2) + std::string(32, '\x03');  // q8_0: scale 1, codes 3
  const std::string other = std::string("\x00\x3c", 2) + std::string(32, '\x04');
  const Model model = read(file_of(entries("gpt2"), {{"blk.0.attn_output.weight", {32, 2}, 8, block + other}}).bytes());
  const Tensor* tensor = model.find("transformer.h.0.attn.c_proj.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (Shape{32, 2}));
  EXPECT_EQ(values(*tensor)[0], 3);
  EXPECT_EQ(values(*tensor)[1], 4);
  EXPECT_EQ(tensor->layout.name(), "poise.q8_0.columns/1");
  EXPECT_THAT(model.warnings, IsEmpty());
  EXPECT_EQ(stored(model, "blk.0.attn_output.weight"), block + other);
}

// Codes are made from llama.cpp's matrix: the largest number of each column is 127 scales.
TEST(GgufArchitectures, MatricesOfGpt2BecomeBlocksOfColumns) {
  Model model = model_of(R"({"n_embd": 32, "n_head": 2})", "gpt2");
  std::vector<float> numbers;
  for (int in = 0; in < 32; ++in)
    numbers.insert(numbers.end(), {in == 0 ? 127.0F : static_cast<float>(in), in == 0 ? -254.0F : 2.0F});
  model.add(make_tensor("transformer.h.0.mlp.c_proj.weight", {32, 2}, numbers));
  std::string expected = std::string("\x00\x3c\x7f", 3);  // 1 as float16, 127
  for (char in = 1; in < 32; ++in) expected += in;
  expected += std::string("\x00\x40\x81", 3) + std::string(31, '\x01');  // 2, -127
  const Transformed made = transform(model, kGguf, {.quantize = StoredType{.dtype = DType::u8, .blocks = "q8_0"}});
  EXPECT_EQ(stored(made.model, "blk.0.ffn_down.weight"), expected);
  EXPECT_EQ(made.model.find("transformer.h.0.mlp.c_proj.weight")->shape, (Shape{32, 2}));
  EXPECT_EQ(made.quantized.front().bytes_out, 68U);
}

// This holds for .zt files, too. Blocks of rows, which older files may have, become numbers or blocks of columns when
// asked.
TEST(GgufArchitectures, BlocksOfRowsOfGpt2AreConverted) {
  const Model rows =
      read(file_of({}, {{"transformer.h.0.attn.c_proj.weight", {32, 32}, 8, std::string(34 * 32, '\0')}}).bytes());
  Model model = model_of(R"({"n_embd": 32, "n_head": 2})", "gpt2");
  model.add(*rows.find("transformer.h.0.attn.c_proj.weight"));
  const auto layout = [&](const Format& target, const ConvertOptions& options) {
    return std::string(transform(model, target, options).model.tensors().front().layout.name());
  };
  const StoredType q8_0{.dtype = DType::u8, .blocks = "q8_0"};
  EXPECT_EQ(layout(kGguf, {.dtype = DType::f32}), "dense");
  EXPECT_EQ(layout(kGguf, {.quantize = q8_0}), "poise.q8_0.columns/1");
  EXPECT_EQ(layout(find_format_by_name("zt"), {.quantize = q8_0}), "poise.q8_0.columns/1");
  EXPECT_EQ(layout(find_format_by_name("zt"), {}), "gguf.q8_0/1");
}

// Numbers of half a byte are first converted to other numbers.
TEST(GgufArchitectures, NarrowNumbersOfGpt2BecomeBlocks) {
  Model model = model_of(R"({"n_embd": 32, "n_head": 2})", "gpt2");
  // E2M1: 2 is 1, low nibbles first.
  model.add(make_dense("transformer.h.0.mlp.c_proj.weight", {32, 2}, DType::f4_e2m1,
                       make_memory_blob(std::vector<std::byte>(32, std::byte{0x02}), "w")));
  const Transformed made = transform(model, kGguf, {.quantize = StoredType{.dtype = DType::u8, .blocks = "q4_0"}});
  const std::vector<float> numbers = values(*made.model.find("transformer.h.0.mlp.c_proj.weight"));
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], 0);
  EXPECT_EQ(numbers[62], 1);
}

// Only GPT-2's blocks run along columns.
TEST(GgufArchitectures, BlocksOfColumnsAreGpt2s) {
  const Model gpt2 =
      read(file_of(entries("gpt2"), {{"blk.0.attn_output.weight", {32, 2}, 8, std::string(68, '\0')}}).bytes());
  Model model = model_of(
      R"({"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32, "max_position_embeddings": 4})",
      "llama");
  Tensor columns = *gpt2.find("transformer.h.0.attn.c_proj.weight");
  columns.name = "model.layers.0.mlp.up_proj.weight";
  model.add(columns);
  const Error error = support::error_of([&] { support::written(model, kGguf); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("its blocks run along columns"));
}

TEST(GgufArchitectures, BlocksOfGpt2AreNotWritten) {
  const Model blocks = read(file_of({}, {{"h.0.attn.c_proj.weight", {32, 2}, 8, std::string(68, '\0')}}).bytes());
  Model model = model_of(R"({"n_embd": 32, "n_head": 2})", "gpt2");
  model.add(*blocks.find("h.0.attn.c_proj.weight"));
  const Error error = support::error_of([&] { support::written(model, kGguf); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("blocks along its rows cannot be transposed"));
}

// The first checkpoints of GPT-2 have no "transformer." before their names.
TEST(GgufArchitectures, NamesOfGpt2MayBeShort) {
  Model model = model_of(R"({"n_embd": 2, "n_head": 1})", "gpt2");
  model.add(make_tensor("h.0.mlp.c_proj.weight", {3, 2}, {1, 2, 3, 4, 5, 6}));
  model.add(make_tensor("wpe.weight", {1, 2}, {7, 8}));
  EXPECT_EQ(stored(model, "blk.0.ffn_down.weight"), floats({1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(stored(model, "position_embd.weight"), floats({7, 8}));
}

TEST(GgufArchitectures, RowsOfPhi3AreFused) {
  const Model model = read(file_of(entries("phi3"), {{"blk.0.attn_qkv.weight", {8, 1}, 0, std::string(32, 'q')},
                                                     {"blk.0.ffn_up.weight", {8, 2}, 0, std::string(64, 'u')}})
                               .bytes());
  EXPECT_EQ(bytes_of(model, "model.layers.0.self_attn.qkv_proj.weight"), std::string(32, 'q'));
  EXPECT_EQ(bytes_of(model, "model.layers.0.mlp.gate_up_proj.weight"), std::string(64, 'u'));
}

// theta 500000, 16 elements, factor 8, frequency factors 1 and 4, 8192 positions: computed with NumPy.
const std::vector<float> kLlama3 = {1, 1, 1, 1, 2.6945297718048096F, 8, 8, 8};

Model with_rope_freqs(const std::vector<float>& factors) {
  return read(file_of(entries("llama", {f32_entry("llama.rope.freq_base", 5e5F)}),
                      {{"rope_freqs.weight", {factors.size()}, 0, floats(factors)}})
                  .bytes());
}

TEST(GgufArchitectures, FactorsOfFrequenciesAreRopeScaling) {
  const Model model = with_rope_freqs(kLlama3);
  EXPECT_EQ(model.size(), 0U);
  EXPECT_EQ(*model.config_json.find("rope_scaling"), Value(Attributes{{"rope_type", "llama3"},
                                                                      {"factor", 8.0},
                                                                      {"low_freq_factor", 1.0},
                                                                      {"high_freq_factor", 4.0},
                                                                      {"original_max_position_embeddings", 8192}}));
  // Other factors become longrope: each divides its frequency in contexts of any length.
  const Attributes other = *with_rope_freqs({1, 2}).config_json.get_if<Attributes>("rope_scaling");
  EXPECT_EQ(*other.find("rope_type"), Value("longrope"));
  EXPECT_EQ(*other.find("long_factor"), Value(Value::Array{1.0, 2.0}));
  EXPECT_EQ(*other.find("short_factor"), Value(Value::Array{1.0, 2.0}));
  EXPECT_EQ(*other.find("attention_factor"), Value(1.0));
  EXPECT_EQ(with_rope_freqs({1, 1}).config_json.find("rope_scaling"), nullptr);
}

TEST(GgufArchitectures, RopeScalingOfLlama3IsWrittenAsFactors) {
  const Model model = model_of(
      R"({"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "rope_theta": 500000.0,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
      "llama");
  std::vector<float> factors(8);
  const std::string bytes = stored(model, "rope_freqs.weight");
  ASSERT_EQ(bytes.size(), 32U);
  std::memcpy(factors.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(factors[i], kLlama3[i], 1e-6F * kLlama3[i]);
}

// Source: load_hparams() of llama.cpp's llama-model.cpp.
TEST(GgufArchitectures, AFactorWithoutATypeScalesLinearly) {
  const auto scaling = [](std::vector<Entry> more) {
    return read(file_of(entries("llama", std::move(more)), {}).bytes()).config_json;
  };
  const Value linear(Attributes{{"rope_type", "linear"}, {"factor", 4.0}});
  EXPECT_EQ(*scaling({f32_entry("llama.rope.scaling.factor", 4)}).find("rope_scaling"), linear);
  EXPECT_EQ(*scaling({f32_entry("llama.rope.scale_linear", 4)}).find("rope_scaling"), linear);
  EXPECT_EQ(*scaling({f32_entry("llama.rope.scale_linear", 8), f32_entry("llama.rope.scaling.factor", 4)})
                 .find("rope_scaling"),
            linear);
  EXPECT_EQ(*scaling({text_entry("llama.rope.scaling.type", "linear"), f32_entry("llama.rope.scale_linear", 4)})
                 .find("rope_scaling"),
            linear);
  for (const float none : {0.0F, 1.0F})
    EXPECT_EQ(scaling({f32_entry("llama.rope.scaling.factor", none)}).find("rope_scaling"), nullptr) << none;
  const std::vector<Entry> none = {text_entry("llama.rope.scaling.type", "none"),
                                   f32_entry("llama.rope.scaling.factor", 4)};
  EXPECT_EQ(scaling(none).find("rope_scaling"), nullptr);
  const Model reread = read_again(read(file_of(entries("llama", none), {}).bytes()));
  EXPECT_EQ(reread.config_json.find("rope_scaling"), nullptr) << "a factor without the type would scale";
}

// sqrt(1 + ln 4 / ln 512) is 1.1055415967851334.
TEST(GgufArchitectures, LongropeIsTwoTensorsAndAFactor) {
  const std::string config =
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "partial_rotary_factor": 0.5,
      "max_position_embeddings": 2048, "original_max_position_embeddings": 512,
      "rope_scaling": {"type": "longrope", "short_factor": [1.5], "long_factor": [3.25]}})";
  const Model model = model_of(config, "phi3");
  EXPECT_EQ(stored(model, "rope_factors_long.weight"), floats({3.25F}));
  EXPECT_EQ(stored(model, "rope_factors_short.weight"), floats({1.5F}));
  const Model reread = read_again(model);
  EXPECT_EQ(reread.size(), 0U);
  EXPECT_EQ(*reread.config_json.find("rope_scaling"), *model.config_json.find("rope_scaling"));

  const Model other = read(file_of(entries("phi3", {u32_entry("phi3.rope.scaling.original_context_length", 16),
                                                    f32_entry("phi3.rope.scaling.attn_factor", 2)}),
                                   {{"rope_factors_long.weight", {2}, 0, floats({1, 4})},
                                    {"rope_factors_short.weight", {2}, 0, floats({1, 2})}})
                               .bytes());
  EXPECT_EQ(*other.config_json.find("original_max_position_embeddings"), Value(16));
  EXPECT_EQ(*other.config_json.find("rope_scaling"), Value(Attributes{{"rope_type", "longrope"},
                                                                      {"long_factor", Value::Array{1.0, 4.0}},
                                                                      {"short_factor", Value::Array{1.0, 2.0}},
                                                                      {"attention_factor", 2.0}}));
}

// yarn multiplies by 0.1 ln(factor) + 1, which is 1.1386294 for a factor of 4. llama.cpp multiplies this by
// rope.scaling.attn_factor.
TEST(GgufArchitectures, YarnHasAFactorOfAttention) {
  const auto with = [](const std::string& more) {
    return model_of(
        R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "max_position_embeddings": 64,
                        "rope_scaling": {"rope_type": "yarn", "factor": 4.0)" +
            more + "}}",
        "llama");
  };
  const auto factor = [](const Model& model) { return float_of(model, "llama.rope.scaling.attn_factor"); };
  EXPECT_EQ(factor(with("")), 0);
  EXPECT_EQ(factor(with(R"(, "mscale": 1.0, "mscale_all_dim": 0.0)")), 0);
  EXPECT_FLOAT_EQ(factor(with(R"(, "attention_factor": 1.0)")), 0.87824886F);
  EXPECT_FLOAT_EQ(factor(with(R"(, "mscale": 1.0, "mscale_all_dim": 1.0)")), 0.87824886F);
  EXPECT_THAT(losses(with(R"(, "attention_factor": 1.0)")), IsEmpty());
  for (const char* more : {R"(, "attention_factor": 1.25)", R"(, "mscale": 1.0, "mscale_all_dim": 0.5)"}) {
    const Model model = with(more);
    EXPECT_EQ(to_json(*read_again(model).config_json.find("rope_scaling")),
              to_json(*model.config_json.find("rope_scaling")))
        << more;
  }
  const Model other = read(file_of(entries("llama", {text_entry("llama.rope.scaling.type", "yarn"),
                                                     f32_entry("llama.rope.scaling.factor", 4),
                                                     f32_entry("llama.rope.scaling.attn_factor", 2)}),
                                   {})
                               .bytes());
  EXPECT_EQ(*other.config_json.find("rope_scaling"),
            Value(Attributes{{"rope_type", "yarn"}, {"factor", 4.0}, {"attention_factor", 2.2772589}}));
}

// llama.cpp multiplies by this factor without yarn, too; transformers has no key for it.
TEST(GgufArchitectures, AFactorOfAttentionAloneIsKeptAndNotRun) {
  const Model model = read(file_of(entries("llama", {f32_entry("llama.rope.scaling.attn_factor", 2)}), {}).bytes());
  EXPECT_EQ(*model.config_json.find("rope_scaling"), Value(Attributes{{"rope_type", "default"}, {"attn_factor", 2.0}}));
  EXPECT_EQ(*read_again(model).config_json.find("rope_scaling"), *model.config_json.find("rope_scaling"));
  const Error error = support::error_of([&] { find_family_or_llama(model).plan(make_config_view(model)); });
  EXPECT_THAT(error.message(), HasSubstr("attn_factor, which is not supported"));
  EXPECT_THAT(list_effects_outside_config(model), testing::Not(IsEmpty())) << "formats without the key refuse it";
  const Model scaled = read(file_of(entries("llama", {f32_entry("llama.rope.scaling.attn_factor", 1)}), {}).bytes());
  EXPECT_EQ(scaled.config_json.find("rope_scaling"), nullptr);
}

TEST(GgufArchitectures, WindowsOfLayers) {
  const auto types = [](const Entry& pattern) {
    const Model model =
        read(file_of(entries("gemma3", {u32_entry("gemma3.attention.sliding_window", 8), pattern}), {}).bytes());
    const Value* found = model.config_json.find("layer_types");
    return found == nullptr ? std::string("none") : to_json(*found);
  };
  const char* const kPattern = "gemma3.attention.sliding_window_pattern";
  EXPECT_EQ(types(array_entry(kPattern, kBool, {std::string(1, '\0'), "\x01"})),
            R"(["full_attention","sliding_attention"])");
  EXPECT_EQ(types(u32_entry(kPattern, 2)), R"(["sliding_attention","full_attention"])");
  EXPECT_EQ(types(u32_entry(kPattern, 0)), "none");
  EXPECT_EQ(types(array_entry(kPattern, kBool, {"\x01"})), "none");  // fewer items than layers
  const Model olmo = read(file_of(entries("olmo2", {u32_entry("olmo2.attention.sliding_window", 8)}), {}).bytes());
  EXPECT_EQ(to_json(*olmo.config_json.find("layer_types")), R"(["sliding_attention","sliding_attention"])");

  const auto written = [](const std::string& key) {
    const Model model = model_of(R"({"num_hidden_layers": 4, "sliding_window": 8, )" + key + "}", "gemma3_text");
    const std::string file = support::to_string(support::written(model, kGguf));
    const std::string pattern = text("gemma3.attention.sliding_window_pattern");
    const std::size_t at = file.find(pattern);
    return at == std::string::npos ? std::string() : file.substr(at + pattern.size(), 20);
  };
  const std::string four = number(kArray, 4) + number(kBool, 4) + number(4, 8);
  EXPECT_EQ(written(R"("sliding_window_pattern": 2)"), four + std::string("\x01\x00\x01\x00", 4));
  EXPECT_EQ(written(R"("sliding_window_pattern": 6)"), "");  // llama.cpp's default
  EXPECT_EQ(written(R"("layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"])"),
            four + std::string("\x00\x01\x01\x00", 4));
}

TEST(GgufArchitectures, MissingKeysHaveLlamaCppsDefaults) {
  const auto config = [](const std::string& name, std::uint32_t layers, const std::vector<TensorEntry>& tensors = {}) {
    auto all = entries(name);
    all[3] = u32_entry(name + ".block_count", layers);
    return read(file_of(all, tensors).bytes()).config_json;
  };
  EXPECT_EQ(*config("qwen3moe", 2).find("norm_topk_prob"), Value(true));
  EXPECT_EQ(*config("gemma2", 26).find("query_pre_attn_scalar"), Value(4));
  EXPECT_EQ(*config("gemma2", 26).find("sliding_window"), Value(4096));
  EXPECT_EQ(*config("gemma3", 26).find("sliding_window"), Value());
  EXPECT_EQ(config("llama", 2).find("sliding_window"), nullptr);
  EXPECT_EQ(config("llama", 2).find("attention_bias"), nullptr);
  EXPECT_EQ(*config("llama", 2, {{"blk.0.attn_q.bias", {8}, 0, std::string(32, '\0')}}).find("attention_bias"),
            Value(true));
  EXPECT_EQ(*config("qwen2", 2, {{"token_embd.weight", {8, 3}, 0, std::string(96, '\0')}}).find("vocab_size"),
            Value(3));
}

// For a missing key, llama.cpp and transformers have different defaults: llama-hparams.h and models/gemma2.cpp of
// llama.cpp, Phi3Config and Gemma2Config of transformers.
TEST(GgufArchitectures, KeysWhoseAbsenceMeansAnotherNumberAreWritten) {
  const std::string sizes =
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 4, "max_position_embeddings": 16384, )";
  const std::string longrope = R"("rope_scaling": {"type": "longrope", "short_factor": [1, 1], "long_factor": [2, 2])";
  // transformers switches to the long factors after 4096 positions, llama.cpp after the context.
  const std::string original = "phi3.rope.scaling.original_context_length";
  EXPECT_EQ(number_of(model_of(sizes + longrope + "}}", "phi3"), original), 4096U);
  EXPECT_EQ(number_of(model_of(sizes + longrope + R"(, "original_max_position_embeddings": 512}})", "phi3"), original),
            512U);
  EXPECT_EQ(*read(file_of(entries("phi3"), {}).bytes()).config_json.find("original_max_position_embeddings"),
            Value(64));
  // llama.cpp gives every other layer of a Gemma 2 a window of 4096.
  const std::string window = "gemma2.attention.sliding_window";
  const std::string full = R"("layer_types": ["full_attention", "full_attention"], "sliding_window": )";
  EXPECT_EQ(number_of(model_of(sizes + full + "null}", "gemma2"), window), 16384U);
  EXPECT_EQ(number_of(model_of(sizes + full + "8}", "gemma2"), window), 16384U);
  EXPECT_EQ(number_of(model_of(sizes + R"("sliding_window": 8})", "gemma2"), window), 8U);
  EXPECT_EQ(number_of(model_of(sizes + full + "null}", "gemma3_text"), "gemma3.attention.sliding_window"),
            std::nullopt);
  // llama.cpp does not load a gpt-oss without a window.
  EXPECT_EQ(number_of(model_of(sizes + R"("sliding_window": null})", "gpt_oss"), "gpt-oss.attention.sliding_window"),
            16384U);
  EXPECT_EQ(read_again(model_of(sizes + R"("sliding_window": null})", "gpt_oss")).config->sliding_window, 0);
}

// llama.cpp's models/gemma3.cpp: the layers with a window have a base of their own, 10000 without the key.
TEST(GgufArchitectures, NestedRopeParametersOfGemma3AreWritten) {
  const auto with = [](const std::string& sliding) {
    return model_of(
        R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 4, "sliding_window": 8,
            "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 70000.0},
            "sliding_attention": {)" +
            sliding + R"("rope_theta": 5000.0}}, "query_pre_attn_scalar": 256})",
        "gemma3_text");
  };
  const Model model = with(R"("rope_type": "default", )");
  EXPECT_EQ(float_of(model, "gemma3.rope.freq_base"), 70000);
  EXPECT_EQ(float_of(model, "gemma3.rope.freq_base_swa"), 5000);
  EXPECT_EQ(float_of(model, "gemma3.rope.scaling.factor"), 8);
  EXPECT_THAT(losses(model), IsEmpty());
  EXPECT_THAT(losses(with(R"("rope_type": "linear", "factor": 4.0, )")),
              ElementsAre(HasSubstr("ignores the type of sliding_attention in rope_parameters (linear)")));
}

// docs/families.md: the key next to the object takes precedence over the one inside.
TEST(GgufArchitectures, OriginalPositionsNextToRopeScalingAreWritten) {
  const std::string sizes =
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "max_position_embeddings": 64,
      "original_max_position_embeddings": 16, "rope_scaling": )";
  const std::string key = "llama.rope.scaling.original_context_length";
  for (const std::string inside : {"", R"(, "original_max_position_embeddings": 32)"}) {
    const Model yarn = model_of(sizes + R"({"rope_type": "yarn", "factor": 4.0)" + inside + "}}", "llama");
    EXPECT_EQ(number_of(yarn, key), 16U) << inside;
    const Model longrope = model_of(
        sizes + R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [2, 2])" + inside + "}}", "llama");
    EXPECT_EQ(number_of(longrope, key), 16U) << inside;
  }
  const Model llama3 = model_of(
      sizes + R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}})", "llama");
  EXPECT_EQ(stored(llama3, "rope_freqs.weight").size(), 8U);
}

// sqrt(1 + ln 4 / ln 512), although 1024 is twice 512.
TEST(GgufArchitectures, AFactorOfLongropeDeterminesItsAttention) {
  const Model model = model_of(
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4,
      "max_position_embeddings": 1024, "original_max_position_embeddings": 512,
      "rope_scaling": {"rope_type": "longrope", "factor": 4.0, "short_factor": [1, 1], "long_factor": [2, 2]}})",
      "phi3");
  EXPECT_FLOAT_EQ(float_of(model, "phi3.rope.scaling.attn_factor"), 1.1055416F);
}

// llama.cpp's models/*.cpp: assertions about n_rot, shapes of attn_output, and tensors that are required.
TEST(GgufArchitectures, ModelsThatLlamaCppDoesNotLoadAreRefused) {
  const auto refusal = [](const std::string& more, const std::string& type, const std::string& tensor = {}) {
    Model model = model_of(
        R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, )" + more + "}",
        type);
    if (!tensor.empty()) model.add(make_tensor(tensor, {4, 8}, std::vector<float>(32)));
    const Error error = support::error_of([&] { support::written(model, kGguf); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    return error.message();
  };
  const std::string part = R"("partial_rotary_factor": 0.5)";
  EXPECT_THAT(refusal(part, "llama"),
              HasSubstr("it rotates whole heads in llama models, and partial_rotary_factor is 0.5"));
  EXPECT_THAT(losses(model_of(kPhi3Part, "phi3")), IsEmpty());
  for (const std::string type : {"olmo2", "phi3", "qwen2"})
    EXPECT_THAT(refusal(R"("head_dim": 6)", type), HasSubstr("and head_dim is 6")) << type;
  EXPECT_THAT(refusal(R"("attention_bias": false, "num_key_value_heads": 2, "head_dim": 4)", "gpt_oss"),
              HasSubstr("it needs attention_bias to be true in gpt_oss models, and it is false"));
  EXPECT_THAT(
      refusal(R"("num_experts": 4, "mlp_only_layers": [0])", "qwen3_moe", "model.layers.0.mlp.down_proj.weight"),
      HasSubstr("it needs experts in each layer of qwen3_moe models"));
}

// llama.cpp's models/gemma3.cpp computes such a file without windows; its models/mistral3.cpp and llama-context.cpp
// divide by the factor of attention with this scale.
TEST(GgufArchitectures, KeysThatOnlyLlamaCppHasAreFollowedOrRefused) {
  const auto config = [](const std::string& name, const std::vector<Entry>& more) {
    return read(file_of(entries(name, more), {}).bytes()).config_json;
  };
  for (const std::vector<Entry>& more :
       {std::vector<Entry>(), std::vector<Entry>{u32_entry("gemma3.attention.sliding_window", 0)}})
    EXPECT_EQ(to_json(*config("gemma3", more).find("layer_types")), R"(["full_attention","full_attention"])");
  EXPECT_EQ(*config("mistral3",
                    {text_entry("mistral3.rope.scaling.type", "yarn"), f32_entry("mistral3.rope.scaling.factor", 4),
                     f32_entry("mistral3.rope.scaling.yarn_log_multiplier", 0.5)})
                 .find("rope_scaling"),
            Value(Attributes{{"rope_type", "yarn"}, {"factor", 4.0}, {"mscale", 1.0}, {"mscale_all_dim", 0.5}}));
  for (const std::string name : {"gemma2", "gpt-oss"}) {
    const Entry base = f32_entry(name + ".rope.freq_base", 5000);
    const auto find = [&](float number) {
      const Attributes json = config(name, {base, f32_entry(name + ".rope.freq_base_swa", number)});
      return json.find("rope_local_base_freq") != nullptr;
    };
    EXPECT_FALSE(find(5000)) << name;
    EXPECT_TRUE(find(6000)) << name;
  }
  const Model further = read(file_of(entries("llama", {text_entry("llama.rope.scaling.type", "longrope"),
                                                       f32_entry("llama.rope.scaling.factor", 4)}),
                                     {{"rope_factors_long.weight", {2}, 0, floats({1, 4})},
                                      {"rope_factors_short.weight", {2}, 0, floats({1, 2})}})
                                 .bytes());
  EXPECT_EQ(*further.config_json.get_if<Attributes>("rope_scaling")->find("long_factor"),
            Value(Value::Array{4.0, 16.0}));
  const std::vector<Entry> linear = {f32_entry("llama.rope.scaling.factor", 4)};
  const Model both = read(file_of(entries("llama", linear), {{"rope_freqs.weight", {2}, 0, floats({1, 2})}}).bytes());
  EXPECT_THAT(find_unknown_weights(both), ElementsAre("rope_freqs.weight"));
}

// The file's key is not called "hidden_size".
TEST(GgufArchitectures, AMissingHyperparameterIsNamedByTheFilesKey) {
  const auto refusal = [](std::size_t index, const std::vector<Entry>& instead) {
    std::vector<Entry> all = entries("llama");
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
    all.insert(all.end(), instead.begin(), instead.end());
    return support::error_of([&] { read(file_of(all, {}).bytes()); }).message();
  };
  EXPECT_EQ(
      refusal(2, {text_entry("llama.embedding_length", "8")}),
      "gguf: llama.embedding_length: expected an integer of 0 or more, found text (config: hidden_size: missing)");
  EXPECT_EQ(
      refusal(4, {array_entry("llama.feed_forward_length", kI32, {number(4, 4), number(8, 4)})}),
      "gguf: llama.feed_forward_length: expected an integer of 0 or more, found [i32] (config: intermediate_size: "
      "missing)");
  EXPECT_EQ(refusal(5, {}), "gguf: llama.attention.head_count is missing (config: num_attention_heads: missing)");
}

// The models of Gemma 2 with 27 billion weights divide by another number than a head's length.
TEST(GgufArchitectures, TheLargestGemmaScalesByHiddenSize) {
  auto all = entries("gemma2", {u32_entry("gemma2.attention.key_length", 16)});
  all[3] = u32_entry("gemma2.block_count", 46);
  EXPECT_EQ(*read(file_of(all, {}).bytes()).config_json.find("query_pre_attn_scalar"), Value(4));
}

TEST(GgufArchitectures, DifferencesOfLlamaCppsComputationAreReported) {
  const auto said = [](const std::string& more, const std::string& model_type) {
    return losses(model_of(
        R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 4, "max_position_embeddings": 64)" +
            more + "}",
        model_type));
  };
  EXPECT_THAT(said("", "llama"), IsEmpty());
  EXPECT_THAT(said(R"(, "hidden_act": "gelu")", "llama"),
              ElementsAre("llama.cpp assumes that hidden_act is \"silu\"; here it is \"gelu\""));
  EXPECT_THAT(
      said(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1.0})", "llama"),
      IsEmpty());
  EXPECT_THAT(said(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 8})", "llama"),
              ElementsAre("llama.cpp computes yarn with beta_fast 32 and beta_slow 1; rope_scaling has 8 and 1"));
  EXPECT_THAT(said(R"(, "norm_topk_prob": false)", "qwen3_moe"),
              ElementsAre("llama.cpp assumes that norm_topk_prob is true; here it is false"));
  EXPECT_THAT(said(R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0})", "llama"),
              ElementsAre("llama.cpp ignores rope_scaling (dynamic): it will not scale positions"));
  EXPECT_THAT(
      said(R"(, "rope_scaling": {"rope_type": "longrope", "long_factor": [1.0], "short_factor": [1.0]})", "phi3"),
      ElementsAre("llama.cpp will not scale positions: longrope needs two lists of 2 factors"));
  EXPECT_THAT(said(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0})", "llama"),
              Contains(HasSubstr("lacks the factors of its type llama3")));
  EXPECT_THAT(
      said(R"(, "query_pre_attn_scalar": 9)", "gemma2"),
      ElementsAre("llama.cpp scales attention by 256 to the power of -1/2 and ignores query_pre_attn_scalar, 9"));
  EXPECT_THAT(
      said(R"(, "query_pre_attn_scalar": -3)", "gemma2"),
      ElementsAre("llama.cpp scales attention by 256 to the power of -1/2 and ignores query_pre_attn_scalar, -3"));
  for (const std::string none : {"null", "0"}) {
    EXPECT_THAT(said(R"(, "query_pre_attn_scalar": 256, "attn_logit_softcapping": )" + none, "gemma2"),
                ElementsAre("llama.cpp assumes that attn_logit_softcapping is 50; here it is " + none));
    EXPECT_THAT(said(R"(, "query_pre_attn_scalar": 256, "final_logit_softcapping": )" + none, "gemma2"),
                ElementsAre("llama.cpp assumes that final_logit_softcapping is 30; here it is " + none));
  }
  EXPECT_THAT(said(R"(, "hidden_activation": "relu")", "gemma"),
              ElementsAre("llama.cpp assumes that hidden_activation is \"gelu_pytorch_tanh\"; here it is \"relu\""));
  EXPECT_THAT(said(R"(, "attn_logit_softcapping": 50.0)", "gemma3_text"),
              ElementsAre("llama.cpp assumes that attn_logit_softcapping is null; here it is 50.0"));
  EXPECT_THAT(said(R"(, "no_rope_layers": [1, 1])", "smollm3"), IsEmpty());
  EXPECT_THAT(said(R"(, "no_rope_layers": [0, true])", "smollm3"),
              ElementsAre(HasSubstr("leaves positions out of each 4th layer")));
  EXPECT_THAT(said(R"(, "no_rope_layer_interval": 3)", "smollm3"),
              ElementsAre(HasSubstr("leaves positions out of each 4th layer")));
  EXPECT_THAT(said("", "olmo2"), IsEmpty());
  Model bare;
  bare.card.model_type = "gemma";
  bare.config_json = {{"num_attention_heads", 2}};
  EXPECT_THAT(losses(bare), Contains("llama.cpp will not load the file: the configuration lacks block_count"));
}

constexpr auto kSmall =
    R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "max_position_embeddings": 64, "tie_word_embeddings": true})";

// llama.cpp counts the tensors of a file, so it fails for one without a name. Tensors that no computation uses can be
// left out.
TEST(GgufArchitectures, TensorsWithoutANameAreRefused) {
  const auto refusal = [](const char* config, const char* type, const char* name) {
    Model model = model_of(config, type);
    model.add(make_tensor(name, {8}, std::vector<float>(8)));
    const Error error = support::error_of([&] { support::written(model, kGguf); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.message(), HasSubstr("zt, safetensors and huggingface hold the model"));
    return error;
  };
  const Error bias = refusal(kSmall, "qwen3", "model.layers.0.self_attn.o_proj.bias");
  EXPECT_THAT(bias.message(), HasSubstr("gguf: llama.cpp could not run the file: it has no name for "
                                        "model.layers.0.self_attn.o_proj.bias in qwen3 models"));
  const Error strange = refusal(R"({"n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 4, "n_inner": 4})", "gpt2",
                                "transformer.h.0.attn.strange");
  ASSERT_EQ(strange.remedies().size(), 1U);
  EXPECT_EQ(strange.remedies().front(), (Remedy{.kind = Remedy::Kind::skip, .tensor = "transformer.h.0.attn.strange"}));
  EXPECT_EQ(refusal(kSmall, "llama", "vision_tower.norm.weight").remedies().size(), 1U);
}

// Old checkpoints store tensors that every reader computes itself.
TEST(GgufArchitectures, ComputedTensorsAreLeftOut) {
  Model model = model_of(kSmall, "llama");
  model.add(make_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", {2}, {1, 0.5F}));
  EXPECT_THAT(losses(model), Contains("left out: model.layers.0.self_attn.rotary_emb.inv_freq, which llama.cpp "
                                      "computes from the configuration"));
  EXPECT_EQ(read_again(model).size(), 0U);
}

// The program that wrote the file may need these tensors.
TEST(GgufArchitectures, ComputedTensorsOfGgufFilesStay) {
  const std::string name = "blk.0.rotary_emb.inv_freq";
  const Model model = read(file_of(entries("llama"), {{name, {2}, 0, floats({1, 0.5F})}}).bytes());
  EXPECT_EQ(stored(model, name), floats({1, 0.5F}));
  EXPECT_THAT(losses(model), testing::Not(Contains(HasSubstr("left out"))));
}

// llama.cpp's olmo2.cpp and openai-moe.cpp ask for output.weight; other architectures use the embedding.
TEST(GgufArchitectures, TheOutputOfATiedModelIsStoredWhereItIsRequired) {
  const support::TemporaryDirectory folder;
  for (const std::string type : {"olmo2", "llama"}) {
    Model model = model_of(kSmall, type);
    model.add(make_tensor("model.embed_tokens.weight", {3, 8}, std::vector<float>(24, 0.5F)));
    const auto path = folder.path() / (type + ".gguf");
    const SaveReport report = save(model, path);
    const Model reread = open(path);
    const Tensor* output = reread.find("lm_head.weight");
    EXPECT_EQ(output != nullptr, type == "olmo2");
    EXPECT_EQ(reread.config->tie_word_embeddings, type != "olmo2");
    EXPECT_THAT(reread.warnings, IsEmpty());
    if (output == nullptr) continue;
    EXPECT_EQ(bytes_of(reread, "lm_head.weight"), bytes_of(model, "model.embed_tokens.weight"));
    EXPECT_THAT(report.losses, Contains(HasSubstr("the file has model.embed_tokens.weight twice, as lm_head.weight")));
    // A writer may get the tensors themselves.
    EXPECT_THAT(support::error_of([&] { support::written(model, kGguf); }).message(),
                HasSubstr("it requires output.weight in olmo2 models"));
  }
}

// Padding of the vocabulary makes tokens with the ids that llama.cpp assumes: BOS 1 and EOS 2.
TEST(GgufArchitectures, DefaultIdsOfPaddingAreStated) {
  Model model = model_of(kSmall, "llama");
  model.add(make_tensor("model.embed_tokens.weight", {3, 8}, std::vector<float>(24, 0.5F)));
  model.vocabulary.emplace();
  model.vocabulary->add("<unk>", 0, TokenType::normal);
  model.vocabulary->unk_id = 0;
  const support::TemporaryDirectory folder;
  const SaveReport report = save(model, folder.path() / "first.gguf");
  EXPECT_THAT(report.losses,
              Contains("llama.cpp uses token 2, \"[PAD2]\", as the EOS token that the vocabulary lacks"));
  const Model reread = open(folder.path() / "first.gguf");
  EXPECT_EQ(reread.vocabulary->eos_id, 2);
  EXPECT_THAT(reread.warnings, IsEmpty());
  save(reread, folder.path() / "second.gguf");
  save(open(folder.path() / "second.gguf"), folder.path() / "third.gguf");
  EXPECT_EQ(support::contents(folder.path() / "third.gguf"), support::contents(folder.path() / "second.gguf"));
}

// A part of a model is written, because other programs may use it.
TEST(GgufArchitectures, MissingTensorsAreReported) {
  Model model = model_of(kSmall, "llama");
  model.add(make_tensor("model.norm.weight", {8}, std::vector<float>(8)));
  EXPECT_THAT(losses(model), ElementsAre(testing::StartsWith("llama.cpp may not load the file: tensor ")));
}

struct Configuration {
  const char* model_type;
  const char* json;
};
void PrintTo(const Configuration& configuration, std::ostream* out) { *out << configuration.model_type; }

class GgufConfiguration : public testing::TestWithParam<Configuration> {};

TEST_P(GgufConfiguration, ComesBack) {
  const std::string text = R"({"model_type": ")" + std::string(GetParam().model_type) + "\", " + GetParam().json + "}";
  const Model model = model_of(text, GetParam().model_type);
  const Model reread = read_again(model);
  EXPECT_EQ(reread.card.model_type, GetParam().model_type);
  EXPECT_EQ(reread.config.has_value(), model.config.has_value());
  if (model.config) {
    EXPECT_EQ(*reread.config, *model.config);
  }
  for (const auto& [key, value] : model.config_json) {
    const Value* found = reread.config_json.find(key);
    EXPECT_EQ(found == nullptr ? "missing" : to_json(*found), to_json(value)) << key;
  }
}

constexpr auto kConfigurations = std::to_array<Configuration>({
    {"llama",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "rms_norm_eps": 1e-6, "rope_theta": 500000.0,
        "attention_bias": false, "architectures": ["LlamaForCausalLM"], "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"},
    {"llama", R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4,
        "rope_scaling": {"type": "dynamic", "factor": 2.0}, "num_key_value_heads": null, "eos_token_id": [1, 2])"},
    {"llama",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "rope_parameters": {"rope_type": "yarn",
        "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 16.0, "rope_theta": 20000.0})"},
    {"mistral",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "sliding_window": null)"},
    {"mixtral",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "num_local_experts": 8,
        "num_experts_per_tok": 2, "sliding_window": null, "router_aux_loss_coef": 0.02)"},
    {"qwen2",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "use_sliding_window": false, "sliding_window": 32768,
        "max_window_layers": 21)"},
    {"qwen3",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "head_dim": 16, "attention_bias": false)"},
    {"qwen3_moe",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "moe_intermediate_size": 2, "num_experts": 4,
        "num_experts_per_tok": 2, "norm_topk_prob": false, "mlp_only_layers": [], "decoder_sparse_step": 1)"},
    {"gemma",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "head_dim": 16, "hidden_act": "gelu_pytorch_tanh")"},
    {"gemma2",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 4, "head_dim": 16, "sliding_window": 4096,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 224)"},
    {"gemma3_text",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 4, "intermediate_size": 4, "head_dim": 16, "sliding_window": 512,
        "sliding_window_pattern": 2, "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "final_logit_softcapping": null, "query_pre_attn_scalar": 256)"},
    {"gemma3_text",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 4, "head_dim": 16, "sliding_window": 512,
        "layer_types": ["full_attention", "full_attention", "full_attention"])"},
    {"phi3",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4, "original_max_position_embeddings": 64,
        "max_position_embeddings": 256, "sliding_window": 2047, "partial_rotary_factor": 0.5,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0299999713897705], "long_factor": [7]})"},
    {"gpt2",
     R"("n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 64, "n_ctx": 64, "n_inner": null, "layer_norm_epsilon": 1e-05,
        "activation_function": "gelu_new", "task_specific_params": {"text-generation": {"max_length": 50}})"},
    {"olmo2", R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 4)"},
    {"smollm3",
     R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 4, "intermediate_size": 4, "no_rope_layers": [1, 1, 1, 0],
        "no_rope_layer_interval": 4, "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"])"},
});

INSTANTIATE_TEST_SUITE_P(Gguf, GgufConfiguration, testing::ValuesIn(kConfigurations));

}  // namespace
}  // namespace poise
