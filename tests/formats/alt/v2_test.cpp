// Expected values come from the annotated bytes in v2.hex, which were laid out from the specification.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "formats/alt/alt_files.hpp"
#include "formats/registry.hpp"
#include "support/bytes.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

using support::hex;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(AltV2, TheGoldenFileIsReadFieldByField) {
  const Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  EXPECT_EQ(model.origin.format, "alt-v2");
  EXPECT_THAT(model.warnings, IsEmpty());
  const Card card{"mistral",
                  "nobody/tiny",
                  "nobody",
                  "2024-07-05",
                  "2024-12-24",
                  "apache-2.0",
                  "00000000-0000-8000-8000-000000000001"};
  EXPECT_EQ(model.card, card);

  Config config;
  config.hidden_size = 2;
  config.intermediate_size = 3;
  config.max_position_embeddings = 64;
  config.num_attention_heads = 1;
  config.num_hidden_layers = 1;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.vocab_size = 5;
  EXPECT_EQ(model.config, config);

  Vocabulary vocabulary;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  vocabulary.unk_id = 0;
  vocabulary.max_length = 64;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("<s>", 0, TokenType::bos);
  vocabulary.add("</s>", 0, TokenType::eos);
  vocabulary.add("<0x0A>", 0, TokenType::byte);
  vocabulary.add(
      "\xe2\x96\x81"
      "a",
      -1.5F, TokenType::normal);
  EXPECT_EQ(model.vocabulary, vocabulary);

  ASSERT_EQ(model.size(), 12U);
  const Tensor* keys = model.find("model.layers.0.self_attn.k_proj.weight");
  ASSERT_NE(keys, nullptr);
  EXPECT_EQ(keys->layout, Layout::affine);
  EXPECT_EQ(keys->require("data").dtype, DType::qint8);
  EXPECT_EQ(keys->layout.affine()->get(), (Affine{0.5F, 0, 0, false}));
  EXPECT_EQ(keys->require("data").blob->size(), 4U);
  const Tensor* values = model.find("model.layers.0.self_attn.v_proj.weight");
  ASSERT_NE(values, nullptr);
  EXPECT_EQ(values->layout.affine()->get(), (Affine{0.25F, 0, 0, true}));
  EXPECT_EQ(values->require("data").blob->size(), 2U);
  EXPECT_EQ(model.find("model.layers.0.self_attn.o_proj.weight")->layout.affine()->get(), (Affine{1, -8, 7, true}));
  EXPECT_EQ(model.find("model.layers.0.mlp.gate_proj.weight")->require("data").dtype, DType::bf16);
  EXPECT_EQ(model.find("model.norm.weight")->shape, (Shape{2}));
}

TEST(AltV2, TheGoldenFileIsReproducedByteForByte) {
  const auto golden = read_annotated_hex("formats/alt/v2.hex");
  EXPECT_EQ(written(read(golden), kAltV2), golden);
}

TEST(AltV2, AModelWithoutMetadataComesBackWithoutMetadata) {
  Model model;
  model.add(make_dense("x", {}, DType::f32, make_memory_blob(std::vector<std::byte>(4), "x")));
  const Model reread = read(written(model, kAltV2));
  EXPECT_EQ(reread.card, Card{});
  EXPECT_FALSE(reread.config);
  EXPECT_FALSE(reread.vocabulary);
  EXPECT_THAT(reread.warnings, IsEmpty());
  ASSERT_EQ(reread.size(), 1U);
  EXPECT_EQ(reread.tensors()[0].shape, Shape{});
}

TEST(AltV2, ATensorItCannotHoldIsRefusedByNameWithAdvice) {
  Model model;
  model.add(make_dense("t.weight", {2}, DType::f64, make_memory_blob(std::vector<std::byte>(16), "t")));
  const Error error = error_of([&] { written(model, kAltV2); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("t.weight (f64)"));
  EXPECT_THAT(error.remedies(),
              ElementsAre(Remedy{Remedy::Kind::dtype, "f32"}, Remedy{Remedy::Kind::skip, "", "t.weight"}));
}

TEST(AltV2, NumbersThatDoNotFitAreRefusedByName) {
  Model model;
  model.config = Config{};
  model.config->hidden_size = 5'000'000'000;
  const Error error = error_of([&] { written(model, kAltV2); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("parameters: hidden_size: 5000000000"));
}

// The bits of 1e-44 are those of the integer 7, which is a head size. The bits of a head size of 1.1e9 are those of a
// usual float.
TEST(AltV2, NumbersThatReadersTakeInTheOtherOrderAreRefused) {
  Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  model.config->rope_theta = 1e-44F;
  model.config->initializer_range = 10000;
  const Error error = error_of([&] { written(model, kAltV2); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("readers would assume the field order"));
  model.config->initializer_range = 0;
  const Model reread = read(written(model, kAltV2));
  EXPECT_EQ(reread.config->rope_theta, 1e-44F);
  EXPECT_EQ(reread.config->head_dim, model.config->head_dim);
}

TEST(AltV2, RefusesModelsThatItsReaderRefuses) {
  Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  model.vocabulary->add("nan", std::numeric_limits<float>::quiet_NaN(), TokenType::normal);
  EXPECT_THAT(error_of([&] { written(model, kAltV2); }).what(),
              HasSubstr("alt cannot hold the score of token 5, which is NaN"));
  for (const DType dtype : {DType::qint8, DType::qint4}) {
    Model quantized;
    Tensor tensor = make_dense("t", {2}, dtype, make_memory_blob(std::vector<std::byte>(*packed_bytes(dtype, 2)), "t"));
    tensor.layout = make_affine({1, 2, 1, dtype == DType::qint4});
    quantized.add(std::move(tensor));
    const Error error = error_of([&] { written(quantized, kAltV2); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("alt cannot hold tensor t: its min 2 is above its max 1"));
  }
}

// A token's score is the place of the first merge that makes it, because ALT has no merges.
TEST(AltV2, MergesAreWrittenAsScores) {
  Model model;
  Vocabulary& vocabulary = model.vocabulary.emplace();
  vocabulary.kind = VocabularyKind::pipeline;
  for (const char* text : {"a", "b", "c", "ab", "abc"}) vocabulary.add(text, 0, TokenType::normal);
  vocabulary.merges = {{"a", "b"}, {"ab", "c"}};
  const Attributes replace{{"type", "Replace"}, {"pattern", Attributes{{"String", " "}}}, {"content", "\u2581"}};
  vocabulary.pipeline = {{"normalizer", replace}, {"model", Attributes{{"type", "BPE"}, {"byte_fallback", true}}}};
  const Model reread = read(written(model, kAltV2));
  EXPECT_EQ(reread.vocabulary->score(3), 0);
  EXPECT_EQ(reread.vocabulary->score(4), -1);
  EXPECT_LT(reread.vocabulary->score(0), -1000);
  EXPECT_THAT(losses_of(model, kAltV2, {}),
              ElementsAre(HasSubstr("2 merges: its readers merge by score instead"),
                          HasSubstr("cannot hold the absence of a decoder"), HasSubstr("add_dummy_prefix (false)")));
  vocabulary.pipeline.set(
      "normalizer", Attributes{{"type", "Sequence"}, {"normalizers", Value::Array{Attributes{{"type", "NFKC"}}}}});
  const Attributes metaspace{{"type", "Metaspace"}, {"prepend_scheme", "first"}};
  vocabulary.pipeline.set(
      "pre_tokenizer",
      Attributes{{"type", "Sequence"}, {"pretokenizers", Value::Array{Attributes{{"type", "Digits"}}, metaspace}}});
  vocabulary.pipeline.set("decoder", Attributes{{"type", "Metaspace"}});
  EXPECT_THAT(
      losses_of(model, kAltV2, {}),
      ElementsAre(HasSubstr("2 merges"), "alt cannot hold the normalizer NFKC: texts that it changes get other tokens",
                  "alt cannot hold the pre-tokenizer Digits: words may get other tokens",
                  "alt cannot hold the decoder Metaspace: tokens may become another text",
                  HasSubstr("the rule that puts a space before a text only if it has none")));
}

// Readers find tokens by their texts.
TEST(AltV2, EachTokenGetsATextOfItsOwn) {
  Model model;
  Vocabulary& vocabulary = model.vocabulary.emplace();
  for (const char* text : {"a", "", "a", "b", ""}) vocabulary.add(text, -1, TokenType::normal);
  EXPECT_THAT(losses_of(model, kAltV2, {}),
              ElementsAre("alt holds each text of a token once: tokens 2, 4, which have the text of an earlier token, "
                          "become unused tokens"));
  for (const Format* format : {&kAltV2, &kAltV1}) {
    const Model reread = read(written(model, *format));
    EXPECT_EQ(reread.vocabulary->text(1), "");
    EXPECT_EQ(reread.vocabulary->text(2), "[PAD2]");
    EXPECT_EQ(reread.vocabulary->text(3), "b");
    EXPECT_EQ(reread.vocabulary->text(4), "[PAD4]");
    EXPECT_EQ(reread.vocabulary->type(4), format == &kAltV2 ? TokenType::unused : TokenType::normal);
  }
}

// A tokenizer.json has no ids of special tokens. Without a tokenizer_config.json, only config.json has them.
TEST(AltV2, IdsOfConfigJsonAreKept) {
  Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  const std::int32_t bos = model.vocabulary->bos_id;
  model.vocabulary->eos_id = model.vocabulary->bos_id = -1;
  model.config_json = {{"model_type", "mistral"}, {"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 9}};
  EXPECT_THAT(losses_of(model, kAltV2, {}),
              ElementsAre("alt cannot hold 2 keys of config.json (bos_token_id, pad_token_id)"))
      << "BOS does not go in front of texts, and token 9 does not exist";
  EXPECT_EQ(read(written(model, kAltV2)).vocabulary->bos_id, -1);
  EXPECT_EQ(read(written(model, kAltV2)).vocabulary->eos_id, 2);
  model.config_json.set("eos_token_id", Value::Array{2, 3});
  model.config_json.set("pad_token_id", 4);
  EXPECT_THAT(losses_of(model, kAltV2, {}),
              ElementsAre("alt cannot hold 2 keys of config.json (bos_token_id, eos_token_id)"));
  EXPECT_EQ(read(written(model, kAltV2)).vocabulary->eos_id, 2);
  EXPECT_EQ(read(written(model, kAltV2)).vocabulary->pad_id, 4);
  // A post-processor names BOS.
  model.vocabulary->kind = VocabularyKind::pipeline;
  const Attributes special{{"SpecialToken", Attributes{{"id", "<s>"}, {"type_id", 0}}}};
  const Attributes text{{"Sequence", Attributes{{"id", "A"}, {"type_id", 0}}}};
  model.vocabulary->pipeline = {
      {"model", Attributes{{"type", "BPE"}}},
      {"post_processor",
       Attributes{{"type", "TemplateProcessing"},
                  {"single", Value::Array{special, text}},
                  {"pair", Value::Array{special, text}},
                  {"special_tokens", Attributes{{"<s>", Attributes{{"id", "<s>"},
                                                                   {"ids", Value::Array{1}},
                                                                   {"tokens", Value::Array{"<s>"}}}}}}}}};
  EXPECT_EQ(read(written(model, kAltV2)).vocabulary->bos_id, bos);
  EXPECT_THAT(losses_of(model, kAltV2, {}), Contains("alt cannot hold 1 key of config.json (eos_token_id)"));
}

// UNUSED is 4, which is alt.c's number of BYTE.
TEST(AltV2, TypesThatReadersTakeForTheOtherNumberingAreRefused) {
  Model model;
  Vocabulary& vocabulary = model.vocabulary.emplace();
  vocabulary.add("<0x00>", 0, TokenType::unused);
  const Error error = error_of([&] { written(model, kAltV2); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("readers would assume the numbering of alt.c's dialect"));
  EXPECT_NO_THROW(written(model, kAltV1)) << "it has no types";
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.unk_id = 1;
  EXPECT_EQ(read(written(model, kAltV2)).vocabulary, vocabulary) << "the unknown token decides";
}

// i32 length, text, f32 score, i32 type: 5 BOS, 6 EOS, 8 USER_DEFINED, 1 BYTE.
TEST(AltV2, TokensAreWrittenWithTheTypesOfTheirIds) {
  Model model;
  Vocabulary& vocabulary = model.vocabulary.emplace();
  vocabulary.bos_id = 0;
  vocabulary.eos_id = 0;
  vocabulary.add("a", 0, TokenType::eos);
  vocabulary.add("b", 0, TokenType::user_defined);
  const auto file = [&] { return written(model, kAltV2); };
  EXPECT_THAT(support::to_string(file()),
              HasSubstr(hex("01000000 61 00000000 05000000 01000000 62 00000000 08000000")));
  vocabulary.eos_id = 1;
  EXPECT_THAT(support::to_string(file()),
              HasSubstr(hex("01000000 61 00000000 05000000 01000000 62 00000000 06000000")));
  EXPECT_THAT(read(file()).warnings, IsEmpty());
  vocabulary.pad_id = 2;
  vocabulary.add("<0x0A>", 0, TokenType::byte);
  EXPECT_THAT(support::to_string(file()), HasSubstr(hex("06000000 3c307830413e 00000000 01000000")));
}

TEST(AltV2, KeysOfConfigJsonAreLostWithAWordOrRefused) {
  Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  model.config_json = {{"model_type", "mistral"}, {"frobnication", 1}, {"torch_dtype", "bfloat16"}};
  EXPECT_THAT(losses_of(model, kAltV2, {}),
              testing::Contains("alt cannot hold 2 keys of config.json (frobnication, torch_dtype)"));
  EXPECT_NO_THROW(written(model, kAltV2));
  model.config_json.set("partial_rotary_factor", 0.5);
  const Error error = error_of([&] { written(model, kAltV2); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("partial_rotary_factor is 0.5, only 1 is supported"));
}

TEST(AltV2, AFamilyThatPoiseDoesNotKnowIsRefused) {
  Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  model.card.model_type = "frobnicator";
  EXPECT_NO_THROW(written(model, kAltV2)) << "an ALT file that is written in canonical form";
  model.config_json = {{"model_type", "frobnicator"}};
  EXPECT_NO_THROW(written(model, kAltV2)) << "no key that ALT lacks, as after a conversion to zTensor and back";
  model.config_json = {{"model_type", "frobnicator"}, {"frobnication", 1}};
  const Error error = error_of([&] { written(model, kAltV2); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("model_type is \"frobnicator\""));
}

// Version 2's readers would miss the output matrix. Version 1's readers would use the embedding.
TEST(AltV2, AModelWithoutItsOutputIsRefusedUnlessItsNamesTellIt) {
  for (const char* prefix : {"model.", ""}) {
    Model model(read(read_annotated_hex("formats/alt/v1.hex")).header());
    model.config->tie_word_embeddings = false;
    model.config_json = {{"model_type", "mistral"}, {"architectures", Value::Array{"MistralModel"}}};
    model.add(make_dense(std::string(prefix) + "embed_tokens.weight", {1, 2}, DType::f32,
                         make_memory_blob(std::vector<std::byte>(8), "t")));
    EXPECT_THAT(error_of([&] { written(model, kAltV1); }).what(), HasSubstr("its readers would use the embedding"));
    if (*prefix == '\0') {
      EXPECT_NO_THROW(written(model, kAltV2));
    } else {
      EXPECT_THAT(error_of([&] { written(model, kAltV2); }).what(), HasSubstr("without tensor lm_head.weight"));
    }
  }
}

}  // namespace
}  // namespace poise
