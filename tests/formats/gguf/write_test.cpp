#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/diff.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "codec/block_type.hpp"
#include "formats/format.hpp"
#include "formats/gguf/gguf_file.hpp"
#include "formats/gguf/types.hpp"
#include "formats/registry.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"
#include "tensor/block_layout.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor tensor(std::string name, Shape shape, DType dtype, std::size_t bytes, char fill = '\0') {
  return make_dense(std::move(name), std::move(shape), dtype,
                    make_memory_blob(std::vector<std::byte>(bytes, static_cast<std::byte>(fill)), "data"));
}

std::string text_of(const std::vector<std::byte>& bytes) { return support::to_string(bytes); }

// With a smaller alignment llama.cpp exits, and readers require a power of two.
TEST(GgufWrite, RefusesAlignmentsThatNobodyReads) {
  const Model model;
  for (const std::uint64_t align : {0U, 1U, 16U, 48U, 1U << 31}) {
    const Error error = support::error_of([&] { support::written(model, kGguf, {.align = align}); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument) << align;
    EXPECT_THAT(error.message(), testing::HasSubstr("align: expected a power of two from 32")) << align;
  }
}

// llama.cpp requires lists of merges and tokens to be texts, even if empty.
TEST(GgufWrite, AnEmptyListIsAListOfTexts) {
  Model model;
  model.attributes.set("tokenizer.ggml.merges", Value::Array());
  const std::string file = text_of(support::written(model, kGguf));
  const std::string type_count_and_length("\x09\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0", 16);  // an array, of texts, of 0
  EXPECT_NE(file.find("tokenizer.ggml.merges" + type_count_and_length), std::string::npos);
}

// Conversion scripts write the bytes of SentencePiece's rules as i8, too, but llama.cpp accepts only u8.
TEST(GgufWrite, RulesOfNormalizersAreBytes) {
  Model model;
  model.attributes.set("tokenizer.ggml.precompiled_charsmap", Value::Array{Value(1), Value(-2)});
  const std::string file = text_of(support::written(model, kGguf));
  const std::string array("\x09\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\xfe", 18);  // of u8
  EXPECT_NE(file.find("tokenizer.ggml.precompiled_charsmap" + array), std::string::npos);
}

TEST(GgufWriter, WritesTheBytesOfTheSpecification) {
  Model model;
  model.attributes = {{"a.text", "x"},  {"b.number", 7},  {"c.negative", -1},
                      {"d.float", 0.5}, {"e.flag", true}, {"f.list", Value::Array{"p", "q"}}};
  model.add(tensor("m", {2, 3}, DType::f32, 24, 'a'));
  model.add(tensor("v", {5}, DType::i8, 5, 'b'));
  const std::string expected = file_of({u32_entry("general.file_type", 0),
                                        u32_entry("general.quantization_version", 2),
                                        text_entry("a.text", "x"),
                                        u32_entry("b.number", 7),
                                        {"c.negative", kI32, number(0xffffffff, 4)},
                                        f32_entry("d.float", 0.5F),
                                        {"e.flag", kBool, "\x01"},
                                        array_entry("f.list", kText, {text("p"), text("q")})},
                                       {{"m", {3, 2}, 0, std::string(24, 'a')}, {"v", {5}, 24, std::string(5, 'b')}})
                                   .bytes();
  EXPECT_EQ(text_of(support::written(model, kGguf)), expected);
}

TEST(GgufWriter, AModelComesBackAsItWas) {
  const Model original = open(source_directory() / "examples/nano-mistral");
  const Model reread = open(support::source(text_of(support::written(original, kGguf)), "nano.gguf"));
  EXPECT_EQ(reread.card, original.card);
  EXPECT_EQ(*reread.config, *original.config);
  EXPECT_EQ(whole_config(reread).find("attention_dropout") != nullptr,
            whole_config(original).find("attention_dropout") != nullptr);
  ASSERT_TRUE(reread.vocabulary);
  EXPECT_EQ(reread.vocabulary->size(), original.vocabulary->size());
  EXPECT_EQ(reread.vocabulary->add_dummy_prefix, original.vocabulary->add_dummy_prefix);
  for (std::size_t id = 0; id < original.vocabulary->size(); ++id) {
    ASSERT_EQ(reread.vocabulary->text(id), original.vocabulary->text(id));
    ASSERT_EQ(reread.vocabulary->score(id), original.vocabulary->score(id));
  }
  for (const Tensor& tensor : original.tensors()) {
    const Tensor* other = reread.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->shape, tensor.shape);
    if (tensor.shape.size() < 2) continue;  // float32 there
    EXPECT_EQ(read_all(*other->require("data").blob), read_all(*tensor.require("data").blob)) << tensor.name;
  }
  // Written again, it is the same file.
  EXPECT_EQ(support::written(reread, kGguf).size(),
            support::written(open(support::source(text_of(support::written(reread, kGguf)), "x.gguf")), kGguf).size());
}

// llama.cpp could not run the file.
TEST(GgufWriter, RefusesAnArchitectureThatLlamaCppHasNoNameFor) {
  for (const std::string_view type : {"tiny_llama", "bert"}) {
    Model model;
    model.card.model_type = type;
    model.config_json = Attributes{{"model_type", type}};
    model.add(tensor("x", {4}, DType::f32, 16));
    const Error error = support::error_of([&] { support::written(model, kGguf); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.message(),
                testing::AllOf(HasSubstr("llama.cpp could not run the file"), HasSubstr("llama, mistral, mixtral"),
                               HasSubstr(fmt::format("llama.cpp's names for {} models", type)),
                               HasSubstr("zt, safetensors and huggingface hold the model")));
  }
}

// A GGUF file of another program with such a configuration is written as it is.
TEST(GgufWriter, TheConfigurationOfAnArchitectureThatLlamaCppHasNoNameForIsJson) {
  for (const std::string_view type : {"tiny_llama", "frobnicator"}) {
    Model original;
    original.origin.format = "gguf-v3";
    original.card.model_type = type;
    original.config_json = Attributes{{"model_type", type}, {"frobs", Value::Array{1, Value()}}};
    original.add(tensor("x", {4}, DType::f32, 16));
    if (type == "tiny_llama") {
      original.config = Config{.hidden_act = "relu",
                               .hidden_size = 8,
                               .intermediate_size = 8,
                               .max_position_embeddings = 8,
                               .num_attention_heads = 2};
    }
    const std::vector<std::byte> file = support::written(original, kGguf);
    const Model reread = open(support::source(text_of(file), "frob.gguf"));
    EXPECT_EQ(reread.card.model_type, type);
    EXPECT_EQ(reread.config.has_value(), original.config.has_value());
    EXPECT_EQ(*reread.config_json.find("frobs"), *original.config_json.find("frobs"));
    EXPECT_EQ(reread.attributes.find("poise.config"), nullptr);
    EXPECT_EQ(support::written(reread, kGguf), file);
  }
}

// llama.cpp exits if two tokens have the same text, so no written file has them.
TEST(GgufWriter, GivesEachTokenATextOfItsOwn) {
  Model model;
  model.origin.format = "gguf-v3";
  model.attributes = {{"tokenizer.ggml.model", "gpt2"},
                      {"tokenizer.ggml.tokens", Value::Array{"a", "b", "a", "[PAD2]", ""}},
                      {"tokenizer.ggml.token_type", Value::Array{1, 1, 4, 1, 5}}};
  Model reread = open(support::source(text_of(support::written(model, kGguf)), "x.gguf"));
  EXPECT_EQ(*reread.attributes.find("tokenizer.ggml.tokens"), Value(Value::Array{"a", "b", "[[PAD2]", "[PAD2]", ""}));
  EXPECT_EQ(*reread.attributes.find("tokenizer.ggml.token_type"), Value(Value::Array{1, 1, 5, 1, 5}));
  EXPECT_THAT(
      losses_of(model, kGguf, {}),
      ElementsAre("gguf holds each text of a token once: token 2, which has the text of an earlier token, becomes "
                  "an unused token"));
  model.attributes = {};
  model.vocabulary.emplace();
  for (const char* token : {"<unk>", "a", "b", "a"}) model.vocabulary->add(token, 0, TokenType::normal);
  model.vocabulary->unk_id = 0;
  reread = open(support::source(text_of(support::written(model, kGguf)), "x.gguf"));
  ASSERT_TRUE(reread.vocabulary);
  EXPECT_EQ(reread.vocabulary->text(1), "a");
  EXPECT_EQ(reread.vocabulary->text(3), "[PAD3]");
  EXPECT_EQ(reread.vocabulary->type(3), TokenType::unused);
}

std::size_t count_keys(const std::string& file, const std::string& key) {
  std::size_t count = 0;
  for (std::size_t at = file.find(text(key)); at != std::string::npos; at = file.find(text(key), at + 1)) ++count;
  return count;
}

// An attribute replaces the vocabulary's key.
TEST(GgufWriter, WritesEachKeyOfAVocabularyOnce) {
  Model model;
  model.vocabulary.emplace();
  for (const char* token : {"<unk>", "<s>", "</s>", "a"}) model.vocabulary->add(token, 0, TokenType::normal);
  model.vocabulary->unk_id = 0;
  model.vocabulary->bos_id = 1;
  model.vocabulary->pad_id = 3;
  model.attributes = {{"tokenizer.ggml.bos_token_id", 2}, {"tokenizer.ggml.padding_token_id", 0}};
  const std::string file = text_of(support::written(model, kGguf));
  EXPECT_EQ(count_keys(file, "tokenizer.ggml.bos_token_id"), 1U);
  const Model reread = open(support::source(file, "x.gguf"));
  EXPECT_EQ(reread.vocabulary->bos_id, 2);
  EXPECT_EQ(reread.vocabulary->pad_id, 0);
}

// An id without a token stays an attribute of the file, and llama.cpp's default is used.
TEST(GgufWriter, KeepsIdsThatNoTokenHas) {
  const std::string eos = "tokenizer.ggml.eos_token_id";
  const std::string file =
      file_of(
          {text_entry("tokenizer.ggml.model", "llama"),
           array_entry("tokenizer.ggml.tokens", kText, {text("<unk>"), text("<s>"), text("</s>")}), u32_entry(eos, 99)},
          {})
          .bytes();
  const Model model = open(support::source(file, "x.gguf"));
  EXPECT_EQ(*model.attributes.find(eos), Value(99));
  EXPECT_EQ(count_keys(text_of(support::written(model, kGguf)), eos), 1U);
}

// A reader interprets these keys, whichever program set them.
TEST(GgufWriter, RefusesAttributesThatNoReaderAccepts) {
  const Attributes tokens = {{"tokenizer.ggml.model", "llama"},
                             {"tokenizer.ggml.tokens", Value::Array{"<unk>", "<s>", "</s>"}}};
  const Attributes llama = {{"general.architecture", "llama"},    {"llama.context_length", 16},
                            {"llama.embedding_length", 16},       {"llama.block_count", 1},
                            {"llama.feed_forward_length", 8},     {"llama.attention.head_count", 2},
                            {"llama.attention.head_count_kv", 2}, {"llama.attention.layer_norm_rms_epsilon", 1e-5},
                            {"llama.rope.dimension_count", 8},    {"llama.rope.freq_base", 1e4}};
  struct Row {
    Attributes base;
    const char* key;
    Value value;
    const char* reason;
  };
  const std::vector<Row> rows = {
      {tokens, "tokenizer.ggml.scores", Value::Array{1.0}, "expected one for each of 3 tokens, found 1"},
      {tokens, "tokenizer.ggml.token_type", Value::Array{1, 1, 1, 1}, "expected one for each of 3 tokens, found 4"},
      {tokens, "tokenizer.ggml.token_type", Value::Array{"a"}, "expected an array of i32"},
      {llama, "llama.embedding_length", std::uint64_t{1} << 40, "hidden_size: expected an integer of 32 bits"},
      {{{"llama.block_count", 1}}, "general.architecture", "llama", "llama.context_length is missing"},
  };
  for (const Row& row : rows) {
    Model model;
    model.attributes = row.base;
    if (!row.base.empty()) EXPECT_NO_THROW(support::written(model, kGguf));
    model.attributes.set(row.key, row.value);
    const Error error = support::error_of([&] { support::written(model, kGguf); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << row.key;
    EXPECT_THAT(error.message(), AllOf(HasSubstr("because of its attributes"), HasSubstr(row.reason)));
  }
}

TEST(GgufWriter, LeavesOutAttributesThatTensorsAndVocabularyDecide) {
  Model model;
  model.attributes = {{"tokenizer.ggml.tokens", Value::Array{"x", "y"}},
                      {"tokenizer.ggml.model", "gpt2"},
                      {"tokenizer.ggml.merges", Value::Array{"x y"}},
                      {"split.no", 1},
                      {"split.count", 2},
                      {"split.tensors.count", 3},
                      {"general.alignment", 64},
                      {"other", "kept"}};
  const auto lost = [&] { return losses_of(model, kGguf, {}); };
  EXPECT_THAT(lost(),
              testing::Contains("left out: split.no, split.count, split.tensors.count, general.alignment, which the "
                                "file's tensors and vocabulary decide"));
  model.vocabulary.emplace();
  for (const char* token : {"<unk>", "<s>", "</s>", "a"}) model.vocabulary->add(token, 0, TokenType::normal);
  EXPECT_THAT(lost(), testing::Contains("left out: tokenizer.ggml.tokens, tokenizer.ggml.model, tokenizer.ggml.merges, "
                                        "split.no, split.count and 2 more, which the file's tensors and vocabulary "
                                        "decide"));
  const std::string file = text_of(support::written(model, kGguf));
  EXPECT_EQ(count_keys(file, "split.count"), 0U);
  const Model reread = open(support::source(file, "x.gguf"));
  EXPECT_EQ(*reread.attributes.find("other"), Value("kept"));
  EXPECT_EQ(reread.attributes.find("tokenizer.ggml.merges"), nullptr);
  EXPECT_EQ(reread.vocabulary->text(3), "a");
}

// Tests every type that the value alone does not determine, and arrays of each.
TEST(GgufWriter, KeepsTheTypesOfAFile) {
  const std::vector<Entry> entries = {u32_entry("general.file_type", 0),
                                      u32_entry("general.quantization_version", 2),
                                      {"a.u8", kU8, number(5, 1)},
                                      {"a.i8", kI8, number(0xfe, 1)},
                                      {"a.u16", kU16, number(5, 2)},
                                      {"a.i16", kI16, number(5, 2)},
                                      {"a.i32", kI32, number(3, 4)},
                                      {"a.u64", kU64, number(3, 8)},
                                      {"a.i64", kI64, number(3, 8)},
                                      {"a.f64", kF64, number(std::bit_cast<std::uint64_t>(0.1), 8)},
                                      array_entry("b.u8", kU8, {number(255, 1)}),
                                      array_entry("b.i16", kI16, {number(1, 2), number(0xffff, 2)}),
                                      array_entry("b.u32", kU32, {number(1, 4)}),
                                      array_entry("b.u64", kU64, {}),
                                      array_entry("b.f64", kF64, {number(std::bit_cast<std::uint64_t>(0.5), 8)}),
                                      array_entry("b.f32", kF32, {f32(0.1F)})};
  const std::string file = file_of(entries, {}).bytes();
  Model model = open(support::source(file, "test.gguf"));
  EXPECT_EQ(text_of(support::written(model, kGguf)), file);
  // Other values are written with their usual types.
  model.attributes.set("a.u8", 256);
  const std::string changed = text_of(support::written(model, kGguf));
  const std::string key = text("a.u8");
  EXPECT_EQ(changed.substr(changed.find(key) + key.size(), 8), number(kU32, 4) + number(256, 4));
}

TEST(GgufWriter, KeepsTheFileTypeOfAFile) {
  const auto file_type_after = [](std::uint32_t file_type, std::uint32_t type, std::size_t bytes) {
    const std::string file = file_of({u32_entry("general.file_type", file_type)},
                                     {{"blk.0.ffn_up.weight", {256, 1}, type, std::string(bytes, '\0')}})
                                 .bytes();
    const std::string made = text_of(support::written(open(support::source(file, "test.gguf")), kGguf));
    const std::string key = text("general.file_type");
    return static_cast<int>(made[made.find(key) + key.size() + 4]);
  };
  EXPECT_EQ(file_type_after(29, 22, 82), 29);  // IQ2_M
  EXPECT_EQ(file_type_after(21, 10, 84), 21);  // Q2_K_S
  EXPECT_EQ(file_type_after(11, 11, 110), 11);
  EXPECT_EQ(file_type_after(99, 11, 110), 99) << "of a newer llama.cpp";
}

// The numbers are those of llama.h (LLAMA_FTYPE_MOSTLY_...) for the mixes that llama-quantize makes under these names.
TEST(GgufWriter, FileTypesAreThoseOfMixes) {
  struct Matrix {
    const char* name;
    const char* type;
  };
  const auto file_type = [](const std::vector<Matrix>& matrices) {
    Model model;
    for (const auto& [name, type] : matrices) {
      const BlockType& blocks = *find_named_block_type(type);
      const std::uint64_t rows = model.size() == 0 ? 8 : 1;
      Tensor stored = tensor(name, {rows, 256}, DType::u8, rows * 256 / blocks.elements * blocks.bytes);
      stored.layout = make_block_layout(blocks);
      model.add(std::move(stored));
    }
    const std::string file = text_of(support::written(model, kGguf));
    const std::string key = text("general.file_type");
    return static_cast<int>(file[file.find(key) + key.size() + 4]);
  };
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q4_k"}}), 15);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q4_k"}, {"blk.0.attn_v.weight", "q6_k"}}), 15);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q4_k"}, {"blk.0.attn_v.weight", "q5_k"}, {"output.weight", "q6_k"}}),
            14);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q5_k"}}), 17);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q5_k"}, {"blk.0.attn_v.weight", "q6_k"}}), 17);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q5_k"}, {"output.weight", "q6_k"}}), 16);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q3_k"}}), 12);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q3_k"}, {"output.weight", "q6_k"}}), 11);
  EXPECT_EQ(
      file_type({{"blk.0.ffn_up.weight", "q3_k"}, {"blk.0.attn_output.weight", "q4_k"}, {"output.weight", "q6_k"}}),
      12);
  EXPECT_EQ(
      file_type({{"blk.0.ffn_up.weight", "q3_k"}, {"blk.0.attn_output.weight", "q5_k"}, {"output.weight", "q6_k"}}),
      13);
  EXPECT_EQ(file_type({{"blk.0.ffn_up.weight", "q8_0"}}), 7);
}

// llama_ftype has no number for files of mostly q8_k, which no recipe makes. For a file without one, llama.cpp counts
// the tensors.
TEST(GgufWriter, ATypeWithoutAFileTypeIsNotCalledF32) {
  Model model;
  Tensor stored = tensor("blk.0.ffn_up.weight", {8, 256}, DType::u8, 8 * 292);
  stored.layout = make_block_layout(*find_named_block_type("q8_k"));
  model.add(std::move(stored));
  EXPECT_EQ(text_of(support::written(model, kGguf)).find("general.file_type"), std::string::npos);
}

// Every type that Poise writes has a name in llama.cpp.
TEST(GgufWriter, EveryTypeThatIsWrittenHasAFileType) {
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    const gguf::TypedMatrix matrix{"blk.0.ffn_up.weight", type.number, 256};
    EXPECT_NE(gguf::find_file_type(std::span(&matrix, 1), ""), std::nullopt) << type.name;
  }
}

// llama.cpp refuses its own keys if they have other types.
TEST(GgufWriter, ItsOwnKeysHaveTheirTypesAgain) {
  Model model;
  model.card.model_type = "frobnicator";
  model.origin.format = "safetensors";  // holds texts only
  model.attributes = {{"tokenizer.ggml.eot_token_id", "106"},
                      {"frobnicator.scale", "0.5"},
                      {"tokenizer.ggml.add_sep_token", "true"},
                      {"tokenizer.ggml.pre", "default"},
                      {"other.id", "106"},
                      {"frobnicator.sizes", "[1, 2]"},
                      {"tokenizer.ggml.precompiled_charsmap", Value::Array{1, 255, 0}}};
  model.add(tensor("x", {4}, DType::f32, 16));
  const std::string expected =
      file_of({text_entry("general.architecture", "frobnicator"),
               u32_entry("general.file_type", 0),
               u32_entry("general.quantization_version", 2),
               u32_entry("tokenizer.ggml.eot_token_id", 106),
               f32_entry("frobnicator.scale", 0.5F),
               {"tokenizer.ggml.add_sep_token", kBool, "\x01"},
               text_entry("tokenizer.ggml.pre", "default"),
               text_entry("other.id", "106"),
               array_entry("frobnicator.sizes", kI32, {number(1, 4), number(2, 4)}),
               array_entry("tokenizer.ggml.precompiled_charsmap", kU8, {"\x01", "\xff", std::string(1, '\0')})},
              {{"x", {4}, 0, std::string(16, '\0')}})
          .bytes();
  EXPECT_EQ(text_of(support::written(model, kGguf)), expected);
  // A text in a GGUF file stays a text.
  model.origin.format = "gguf-v3";
  const Model reread = open(support::source(text_of(support::written(model, kGguf)), "x.gguf"));
  EXPECT_EQ(*reread.attributes.find("frobnicator.scale"), Value("0.5"));
}

TEST(GgufWriter, ListsInListsBecomeTextWithALoss) {
  Model model;
  model.attributes = {{"a", Value::Array{Value::Array{1, 2}, Value::Array{3}}}, {"b", Value::Array{1, 2, -3}}};
  EXPECT_THAT(losses_of(model, kGguf, {}),
              testing::Contains("gguf holds numbers, texts and arrays of these: a becomes JSON text"));
}

TEST(GgufWriter, ReportsTheAttributesOfTensors) {
  Model model;
  Tensor tensor = make_dense("w", {1}, DType::f32, make_memory_blob(std::vector<std::byte>(4), "w"));
  tensor.attributes.set("note", "x");
  model.add(std::move(tensor));
  EXPECT_THAT(losses_of(model, kGguf, {}), testing::Contains("gguf cannot hold the attributes of tensors (w)"));
}

TEST(GgufWriter, RefusesWhatItCannotHold) {
  const auto refusal = [](Tensor tensor) {
    Model model;
    model.add(std::move(tensor));
    const Error error = support::error_of([&] { support::written(model, kGguf); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    return error.message();
  };
  EXPECT_THAT(refusal(tensor("b", {2}, DType::boolean, 2)), HasSubstr("gguf"));
  EXPECT_THAT(refusal(tensor(std::string(64, 'n'), {1}, DType::f32, 4)),
              HasSubstr("the name has 64 bytes, llama.cpp allows 63"));
  EXPECT_THAT(refusal(tensor("r", {1, 1, 1, 1, 1}, DType::f32, 4)), HasSubstr("5 dimensions, at most 4"));
}

TEST(GgufWriter, PartsAreNamedAsGgufSplitNamesThem) {
  const support::TemporaryDirectory directory;
  ConvertOptions options;
  options.write.shard_size = 500'000;
  convert(source_directory() / "examples/nano-mistral", directory.path() / "nano.gguf", options);
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "nano.gguf"));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    ++files;
    EXPECT_THAT(entry.path().filename().string(), testing::ContainsRegex("nano-0000[1-9]-of-0000[1-9].gguf"));
  }
  EXPECT_GT(files, 2U);
  const std::string second = "nano-00002-of-0000" + std::to_string(files) + ".gguf";
  const Model model = open(directory.path() / second);  // whichever part is opened
  EXPECT_EQ(model.size(), 39U);
  EXPECT_EQ(model.origin.files.size(), files);
  EXPECT_EQ(model.card.model_type, "mistral");
}

}  // namespace
}  // namespace poise
