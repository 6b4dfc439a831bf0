// Files are put together from the GGUF specification of ggml (gguf_file.hpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tokenizer.hpp>
#include <poise/verify.hpp>

#include "formats/gguf/gguf_file.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::ElementsAre;
using testing::HasSubstr;

Model read(const std::string& bytes) { return open(support::source(bytes, "test.gguf")); }

std::vector<float> values(const Tensor& tensor) {
  const auto bytes = read_all(*make_dense_blob(tensor, DType::f32));
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::string floats(const std::vector<float>& numbers) {
  std::string bytes;
  for (const float value : numbers) bytes += f32(value);
  return bytes;
}

std::vector<Entry> llama() {
  return {text_entry("general.architecture", "llama"),
          text_entry("general.author", "nobody"),
          text_entry("general.base_model.0.repo_url", "https://huggingface.co/some/model"),
          u32_entry("llama.context_length", 64),
          u32_entry("llama.embedding_length", 8),
          u32_entry("llama.block_count", 1),
          u32_entry("llama.feed_forward_length", 16),
          u32_entry("llama.attention.head_count", 2),
          u32_entry("llama.attention.head_count_kv", 1),
          f32_entry("llama.attention.layer_norm_rms_epsilon", 1e-5F),
          f32_entry("llama.rope.freq_base", 5e5F),
          u32_entry("llama.rope.dimension_count", 4),
          u32_entry("llama.strange", 3)};
}

TEST(Gguf, EveryTypeOfValueIsRead) {
  const Model model = read(file_of({{"u8", kU8, "\xff"},
                                    {"i8", kI8, "\xff"},
                                    {"u16", kU16, "\x01\x80"},
                                    {"i16", kI16, "\x01\x80"},
                                    {"u32", kU32, number(0xffffffff, 4)},
                                    {"i32", kI32, number(0xfffffffe, 4)},
                                    {"f32", kF32, f32(0.1F)},
                                    {"bool", kBool, "\x01"},
                                    {"text", kText, text("t\xc3\xa9xt")},
                                    {"u64", kU64, number(UINT64_MAX, 8)},
                                    {"i64", kI64, number(UINT64_MAX, 8)},
                                    {"f64", kF64, number(std::bit_cast<std::uint64_t>(0.1), 8)},
                                    {"list", kArray,
                                     number(kArray, 4) + number(2, 8) + number(kU8, 4) + number(2, 8) + "\x01\x02" +
                                         number(kBool, 4) + number(1, 8) + std::string(1, '\0')},
                                    {"bytes", kText, text("\xff\xfe")}},
                                   {})
                               .bytes());
  const auto& a = model.attributes;
  EXPECT_EQ(*a.find("u8"), Value(255));
  EXPECT_EQ(*a.find("i8"), Value(-1));
  EXPECT_EQ(*a.find("u16"), Value(32769));
  EXPECT_EQ(*a.find("i16"), Value(-32767));
  EXPECT_EQ(*a.find("u32"), Value(std::uint64_t{0xffffffff}));
  EXPECT_EQ(*a.find("i32"), Value(-2));
  EXPECT_EQ(*a.find("f32"), Value(0.1));  // the double with the same spelling
  EXPECT_EQ(*a.find("bool"), Value(true));
  EXPECT_EQ(*a.find("text"), Value("t\xc3\xa9xt"));
  EXPECT_EQ(*a.find("u64"), Value(UINT64_MAX));
  EXPECT_EQ(*a.find("i64"), Value(-1));
  EXPECT_EQ(*a.find("f64"), Value(0.1));
  EXPECT_EQ(*a.find("list"), Value(Value::Array{Value(Value::Array{1, 2}), Value(Value::Array{false})}));
  EXPECT_EQ(*a.find("bytes"), Value(Value::Bytes{std::byte{0xff}, std::byte{0xfe}}));
}

TEST(Gguf, TensorsOfEveryPlainTypeAndBlocks) {
  const std::string block = "\x00\x3c" + std::string(16, '\x98');  // q4_0: scale 1, codes 8 and 9, less 8
  std::string scale("\x00\x3c", 2);
  const Model model = read(file_of({}, {{"f32", {2}, 0, floats({1, -2})},
                                        {"f16", {1}, 1, std::string("\x00\x3c", 2)},
                                        {"q4_0", {32, 1}, 2, scale + std::string(16, '\x98')},
                                        {"i8", {3, 1}, 24, "abc"},
                                        {"i16", {1}, 25, "ab"},
                                        {"i32", {1}, 26, "abcd"},
                                        {"i64", {1}, 27, "abcdefgh"},
                                        {"f64", {1}, 28, number(std::bit_cast<std::uint64_t>(0.5), 8)},
                                        {"bf16", {1}, 30, std::string("\x80\x3f", 2)},
                                        {"scalar", {}, 0, floats({7})},
                                        {"unknown", {5}, 77, "12345"},
                                        {"removed", {32}, 4, "12345"}})
                               .bytes());
  EXPECT_EQ(model.size(), 12U);
  EXPECT_THAT(values(*model.find("f32")), ElementsAre(1, -2));
  EXPECT_THAT(values(*model.find("f16")), ElementsAre(1));
  EXPECT_THAT(values(*model.find("bf16")), ElementsAre(1));
  EXPECT_THAT(values(*model.find("scalar")), ElementsAre(7));
  std::vector<float> expected(16, 0.0F);  // the low halves come first
  expected.resize(32, 1.0F);
  EXPECT_EQ(values(*model.find("q4_0")), expected);
  EXPECT_EQ(model.find("q4_0")->layout.name(), "gguf.q4_0/1");
  EXPECT_EQ(model.find("i8")->shape, (Shape{1, 3}));  // the outermost dimension first
  EXPECT_EQ(model.find("unknown")->layout.name(), "gguf.type_77/1");
  EXPECT_EQ(model.find("removed")->layout.name(), "gguf.q4_2.removed/1");
  EXPECT_FALSE(has_float_elements(*model.find("unknown")));
}

TEST(Gguf, NamesKeysAndRowsBecomeThoseOfTransformers) {
  // Row r holds r: llama.cpp pairs neighbours, transformers halves of a head (4 rows).
  std::vector<float> rows;
  for (int r = 0; r < 8; ++r) rows.insert(rows.end(), 8, static_cast<float>(r));
  const Model model =
      read(file_of(llama(), {{"token_embd.weight", {8, 3}, 0, std::string(96, '\0')},
                             {"blk.0.attn_q.weight", {8, 8}, 0, floats(rows)},
                             {"blk.0.attn_k.weight", {8, 4}, 0, floats({rows.begin(), rows.begin() + 32})},
                             {"blk.0.attn_v.weight", {8, 4}, 0, floats({rows.begin(), rows.begin() + 32})},
                             {"blk.0.unheard.of", {1}, 0, floats({1})}})
               .bytes());
  EXPECT_EQ(model.card.model_type, "llama");
  EXPECT_EQ(model.card.author, "nobody");
  EXPECT_EQ(model.card.base_model, "some/model");
  ASSERT_TRUE(model.config);
  EXPECT_EQ(model.config->hidden_size, 8);
  EXPECT_EQ(model.config->num_key_value_heads, 1);
  EXPECT_EQ(model.config->head_dim, 4);
  EXPECT_EQ(model.config->rope_theta, 5e5F);
  EXPECT_TRUE(model.config->tie_word_embeddings);
  EXPECT_EQ(*model.attributes.find("llama.strange"), Value(3));
  EXPECT_EQ(model.attributes.size(), 1U);
  const auto first_of_each_row = [&](const char* name) {
    const std::vector<float> all = values(*model.find(name));
    std::vector<float> result;
    for (std::size_t i = 0; i < all.size(); i += 8) result.push_back(all[i]);
    return result;
  };
  EXPECT_THAT(first_of_each_row("model.layers.0.self_attn.q_proj.weight"), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(first_of_each_row("model.layers.0.self_attn.k_proj.weight"), ElementsAre(0, 2, 1, 3));
  // The second row is the third one in the file.
  const Blob& keys = *model.find("model.layers.0.self_attn.k_proj.weight")->require("data").blob;
  EXPECT_EQ(keys.stored_byte(32 + 4)->offset, keys.stored()->offset + 64 + 4);
  EXPECT_THAT(first_of_each_row("model.layers.0.self_attn.v_proj.weight"), ElementsAre(0, 1, 2, 3));
  EXPECT_NE(model.find("blk.0.unheard.of"), nullptr);
}

TEST(Gguf, AVocabularyOfSentencePiece) {
  const Model model =
      read(file_of({text_entry("tokenizer.ggml.model", "llama"),
                    array_entry("tokenizer.ggml.tokens", kText,
                                {text("<unk>"), text("<s>"), text("<0x00>"), text("\xe2\x96\x81t"), text("u")}),
                    array_entry("tokenizer.ggml.scores", kF32, {f32(0), f32(0), f32(0), f32(-1), f32(-2.5F)}),
                    array_entry("tokenizer.ggml.token_type", kI32,
                                {number(2, 4), number(3, 4), number(6, 4), number(1, 4), number(4, 4)}),
                    u32_entry("tokenizer.ggml.bos_token_id", 1),
                    u32_entry("tokenizer.ggml.unknown_token_id", 0),
                    {"tokenizer.ggml.add_space_prefix", kBool, std::string(1, '\0')},
                    {"tokenizer.ggml.add_bos_token", kBool, "\x01"},
                    text_entry("tokenizer.chat_template", "{{ x }}")},
                   {})
               .bytes());
  ASSERT_TRUE(model.vocabulary);
  const Vocabulary& vocabulary = *model.vocabulary;
  EXPECT_EQ(vocabulary.size(), 5U);
  EXPECT_EQ(vocabulary.text(3), "\xe2\x96\x81t");
  EXPECT_EQ(vocabulary.score(4), -2.5F);
  EXPECT_EQ(vocabulary.type(2), TokenType::byte);
  EXPECT_EQ(vocabulary.type(4), TokenType::user_defined);
  EXPECT_EQ(vocabulary.bos_id, 1);
  EXPECT_EQ(vocabulary.eos_id, 2);  // llama.cpp's default for a file without the key
  EXPECT_FALSE(vocabulary.add_dummy_prefix);
  EXPECT_EQ(model.attributes.find("tokenizer.ggml.add_bos_token"),
            nullptr);  // true is implied, because the file has a BOS
  EXPECT_EQ(vocabulary.chat_template, Value("{{ x }}"));
  // llama.cpp finds the texts of unknown, control and user-defined tokens in a prompt.
  const auto* added = vocabulary.pipeline.get_if<Value::Array>("added_tokens");
  ASSERT_EQ(added->size(), 3U);
  EXPECT_EQ(*(*added)[2].get_if<Attributes>()->find("content"), Value("u"));
  EXPECT_EQ(*(*added)[2].get_if<Attributes>()->find("special"), Value(false));
}

TEST(Gguf, FlagsDetermineTheSpecialTokensAroundAText) {
  const Model model = read(
      file_of({text_entry("tokenizer.ggml.model", "llama"),
               array_entry("tokenizer.ggml.tokens", kText,
                           {text("<unk>"), text("<s>"), text("</s>"), text("\xe2\x96\x81t")}),
               array_entry("tokenizer.ggml.token_type", kI32, {number(2, 4), number(3, 4), number(3, 4), number(1, 4)}),
               u32_entry("tokenizer.ggml.bos_token_id", 1),
               u32_entry("tokenizer.ggml.eos_token_id", 2),
               u32_entry("tokenizer.ggml.unknown_token_id", 0),
               {"tokenizer.ggml.add_bos_token", kBool, std::string(1, '\0')},
               {"tokenizer.ggml.add_eos_token", kBool, "\x01"}},
              {})
          .bytes());
  ASSERT_TRUE(model.vocabulary);
  EXPECT_THAT(Tokenizer(*model.vocabulary).encode_with_special("t"), ElementsAre(3, 2));
  EXPECT_EQ(model.attributes.size(), 0U);
}

// Files of other programs may lack keys. llama.cpp finds byte tokens by their texts, and uses 1 and 2 as BOS and EOS
// (llama-vocab.cpp of v0.5.0).
TEST(Gguf, AVocabularyOfSentencePieceWithoutTypesAndIds) {
  const Model model = read(
      file_of({text_entry("tokenizer.ggml.model", "llama"),
               array_entry("tokenizer.ggml.tokens", kText,
                           {text("<unk>"), text("<s>"), text("</s>"), text("<0x0A>"), text("\xe2\x96\x81"),
                            text("\xe2\x96\x81t"), text("t")}),
               array_entry("tokenizer.ggml.scores", kF32, {f32(0), f32(0), f32(0), f32(0), f32(-2), f32(-1), f32(-2)})},
              {})
          .bytes());
  ASSERT_TRUE(model.vocabulary);
  EXPECT_EQ(model.vocabulary->bos_id, 1);
  EXPECT_EQ(model.vocabulary->eos_id, 2);
  EXPECT_EQ(model.vocabulary->unk_id, 0);
  const Tokenizer tokenizer(*model.vocabulary);
  EXPECT_THAT(tokenizer.encode_with_special("t\nt"), ElementsAre(1, 5, 3, 6));
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings[0].message,
            "gguf: metadata: llama.cpp's defaults are used for missing keys: tokenizer.ggml.token_type (bytes are "
            "found by their texts), tokenizer.ggml.bos_token_id (1), tokenizer.ggml.eos_token_id (2)");
}

// As in llama.cpp, 11 ends a text if no key states the id, and the pre-tokenizer is "default".
TEST(Gguf, AVocabularyOfGpt2WithoutItsPreTokenizer) {
  std::vector<std::string> tokens;
  for (const char* token : {"a", "b", "ab", "\xc4\xa0", "c", "d", "e", "f", "g", "h", "i", "j"})
    tokens.push_back(text(token));
  const Model model =
      read(file_of({text_entry("tokenizer.ggml.model", "gpt2"), array_entry("tokenizer.ggml.tokens", kText, tokens),
                    array_entry("tokenizer.ggml.merges", kText, {text("a b")})},
                   {})
               .bytes());
  const auto vocabulary = make_vocabulary(model);
  ASSERT_TRUE(vocabulary);
  EXPECT_EQ(vocabulary->eos_id, 11);
  EXPECT_THAT(Tokenizer(*vocabulary).encode_with_special("ab a"), ElementsAre(2, 3, 0));
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_THAT(model.warnings[0].message, testing::AllOf(HasSubstr("tokenizer.ggml.pre (\"default\""),
                                                        HasSubstr("tokenizer.ggml.eos_token_id (11)")));
}

// llama.cpp ignores them, too: "bad special token".
TEST(Gguf, WarnsOfSpecialTokensThatTheVocabularyDoesNotHave) {
  for (const std::string_view algorithm : {"llama", "gpt2"}) {
    SCOPED_TRACE(algorithm);
    const Model model = read(
        file_of({text_entry("tokenizer.ggml.model", algorithm), text_entry("tokenizer.ggml.pre", "gpt-2"),
                 array_entry("tokenizer.ggml.tokens", kText, {text("<s>"), text("t")}),
                 array_entry("tokenizer.ggml.token_type", kI32, {number(3, 4), number(1, 4)}),
                 array_entry("tokenizer.ggml.merges", kText, {}), u32_entry("tokenizer.ggml.bos_token_id", 0),
                 u32_entry("tokenizer.ggml.eos_token_id", 2), u32_entry("tokenizer.ggml.padding_token_id", 0xFFFFFFFF)},
                {})
            .bytes());
    ASSERT_EQ(model.warnings.size(), 2U);
    EXPECT_EQ(model.warnings[0].message,
              "gguf: metadata: tokenizer.ggml.eos_token_id is 2, but the vocabulary has 2 tokens: it is not used");
    EXPECT_THAT(model.warnings[1].message, HasSubstr("padding_token_id is 4294967295"));
    const auto vocabulary = make_vocabulary(model);
    ASSERT_TRUE(vocabulary);
    EXPECT_EQ(vocabulary->bos_id, 0);
    EXPECT_EQ(vocabulary->eos_id, -1);
    EXPECT_EQ(vocabulary->pad_id, -1);
  }
}

// convert_hf_to_gguf.py writes whole numbers for Mistral's own tokenizers; llama.cpp accepts them.
TEST(Gguf, ScoresMayBeWholeNumbers) {
  const Model model = read(file_of({text_entry("tokenizer.ggml.model", "llama"),
                                    array_entry("tokenizer.ggml.tokens", kText, {text("<s>"), text("t")}),
                                    array_entry("tokenizer.ggml.scores", kI32, {number(0, 4), number(0xFFFFFFFE, 4)})},
                                   {})
                               .bytes());
  ASSERT_TRUE(model.vocabulary);
  EXPECT_EQ(model.vocabulary->score(1), -2.0F);
}

// llama.cpp's convert_lora_to_gguf.py writes an architecture's name without its hyperparameters.
TEST(Gguf, AnAdapterIsListed) {
  const Model model = read(file_of({text_entry("general.architecture", "llama"), text_entry("general.type", "adapter"),
                                    f32_entry("adapter.lora.alpha", 16)},
                                   {{"blk.0.attn_q.weight.lora_a", {8, 2}, 0, std::string(64, '\0')}})
                               .bytes());
  EXPECT_FALSE(model.config);
  EXPECT_EQ(model.card.model_type, "llama");
  EXPECT_EQ(*model.attributes.find("general.type"), Value("adapter"));
  ASSERT_EQ(model.size(), 1U);
  EXPECT_EQ(model.tensors()[0].name, "blk.0.attn_q.weight.lora_a");
}

// llama.cpp accepts a number for each layer; all may be the same.
TEST(Gguf, OneNumberForAllLayers) {
  std::vector<Entry> entries = llama();
  for (Entry& entry : entries) {
    if (entry.key == "llama.attention.head_count_kv")
      entry = array_entry(entry.key, kU32, {number(1, 4), number(1, 4), number(1, 4)});
    if (entry.key == "llama.feed_forward_length") entry = array_entry(entry.key, kI32, {number(16, 4), number(16, 4)});
  }
  const Model model =
      read(file_of(entries, {{"blk.0.attn_k.weight", {8, 4}, 0, floats(std::vector<float>(32))}}).bytes());
  ASSERT_TRUE(model.config);
  EXPECT_EQ(model.config->num_key_value_heads, 1);
  EXPECT_EQ(model.config->intermediate_size, 16);
}

TEST(Gguf, AModelThatLooksAheadIsNotRun) {
  std::vector<Entry> entries = llama();
  entries.push_back({"llama.attention.causal", kBool, std::string(1, '\0')});
  const Model model = read(file_of(entries, {}).bytes());
  EXPECT_EQ(*model.config_json.find("is_causal"), Value(false));
}

// Version 1 counts in 32 bits.
TEST(Gguf, VersionOne) {
  const std::string bytes = "GGUF" + number(1, 4) + number(1, 4) + number(1, 4) + number(1, 4) + "k" +
                            number(kText, 4) + number(2, 4) + "vv" + number(1, 4) + "t" + number(1, 4) + number(2, 4) +
                            number(0, 4) + number(0, 8);
  const Model model = read(bytes + std::string((32 - bytes.size() % 32) % 32, '\0') + floats({3, 4}));
  EXPECT_EQ(model.origin.format, "gguf-v1");
  EXPECT_EQ(*model.attributes.find("k"), Value("vv"));
  EXPECT_THAT(values(*model.find("t")), ElementsAre(3, 4));
}

std::string be(std::uint64_t value, std::size_t bytes) {
  std::string text = number(value, bytes);
  std::reverse(text.begin(), text.end());
  return text;
}

TEST(Gguf, BigEndian) {
  const auto big_text = [](std::string_view value) { return be(value.size(), 8) + std::string(value); };
  const auto tensor = [&](std::string_view name, std::uint64_t elements, std::uint32_t type, std::uint64_t offset) {
    return big_text(name) + be(1, 4) + be(elements, 8) + be(type, 4) + be(offset, 8);
  };
  const std::string bytes = "GGUF" + be(3, 4) + be(3, 8) + be(1, 8) + big_text("k") + be(kU32, 4) + be(5, 4) +
                            tensor("f", 2, 0, 0) + tensor("q", 32, 8, 32) + tensor("n", 64, 40, 96);
  std::string data =
      be(std::bit_cast<std::uint32_t>(1.5F), 4) + be(std::bit_cast<std::uint32_t>(-2.0F), 4) + std::string(24, '\0');
  data += std::string("\x3c\x00", 2) + std::string(32, '\x02') + std::string(30, '\0');  // q8_0: scale 1
  data += std::string(36, '\0');  // nvfp4, which has no byte order
  const Model model = read(bytes + std::string((32 - bytes.size() % 32) % 32, '\0') + data);
  EXPECT_EQ(*model.attributes.find("k"), Value(5));
  EXPECT_THAT(values(*model.find("f")), ElementsAre(1.5F, -2));
  EXPECT_EQ(values(*model.find("q")), std::vector<float>(32, 2.0F));
  EXPECT_TRUE(model.find("n")->layout.name() == "gguf.nvfp4.big_endian/1" || has_float_elements(*model.find("n")));
}

// 99 is not a type, 4 was Q4_2.
TEST(Gguf, VerifyReportsUnknownTypes) {
  const support::TemporaryDirectory directory;
  const auto path = directory / "test.gguf";
  const std::string bytes = file_of({}, {{"a", {32}, 99, std::string(32, 'a')},
                                         {"b", {32}, 4, std::string(32, 'b')},
                                         {"c", {32}, 8, std::string(34, '\0')}})
                                .bytes();
  std::ofstream(path, std::ios::binary) << bytes;
  const VerifyReport report = verify(path);
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_EQ(
      report.faults[0].message,
      "tensor a: the layout \"gguf.type_99/1\" is not known to this version of Poise: its elements were not checked");
  EXPECT_THAT(report.faults[1].message, HasSubstr("gguf.q4_2.removed/1"));
}

TEST(Gguf, AnotherAlignment) {
  const Model model =
      read(file_of({u32_entry("general.alignment", 256)}, {{"a", {1}, 0, floats({1})}, {"b", {1}, 0, floats({2})}}, 256)
               .bytes());
  EXPECT_THAT(values(*model.find("b")), ElementsAre(2));
  EXPECT_EQ(model.find("b")->require("data").blob->stored()->offset % 256, 0U);
}

TEST(Gguf, APartAloneReportsTheMissingFile) {
  const support::TemporaryDirectory directory;
  const std::string bytes =
      file_of({{"split.no", kU16, number(1, 2)}, {"split.count", kU16, number(3, 2)}}, {{"a", {1}, 0, floats({1})}})
          .bytes();
  for (const char* name : {"m-00002-of-00003.gguf", "m.gguf"}) support::put(directory / name, bytes);
  EXPECT_THAT(support::error_of([&] { open(directory / "m-00002-of-00003.gguf"); }).message(),
              HasSubstr("m-00001-of-00003.gguf is missing"));
  EXPECT_THAT(support::error_of([&] { open(directory / "m.gguf"); }).message(),
              HasSubstr("its name does not end in -00002-of-00003.gguf"));
}

// The name of bytes in memory is not a path, so no other file belongs to them.
TEST(Gguf, APartInMemoryOpensNoOtherFile) {
  const support::TemporaryDirectory directory;
  const auto part = [](std::uint64_t number_of_part, const std::string& tensor) {
    return file_of({{"split.no", kU16, number(number_of_part, 2)}, {"split.count", kU16, number(2, 2)}},
                   {{tensor, {1}, 0, floats({1})}})
        .bytes();
  };
  support::put(directory / "m-00001-of-00002.gguf", part(0, "a"));
  support::put(directory / "m-00002-of-00002.gguf", part(1, "b"));
  const std::string name = directory / "m-00001-of-00002.gguf";
  EXPECT_EQ(open(name).size(), 2U);
  EXPECT_EQ(open(Source::open(name)).size(), 2U);
  EXPECT_THAT(support::error_of([&] { open(support::source(part(0, "a"), name)); }).message(),
              HasSubstr("this is part 1 of 2 in memory"));
}

}  // namespace
}  // namespace poise
