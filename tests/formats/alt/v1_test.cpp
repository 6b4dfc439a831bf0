// Expected values come from the annotated bytes in v1.hex, which were laid out from the specification, and from
// FileBuilder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/alt/alt_files.hpp"
#include "formats/alt/file_builder.hpp"
#include "formats/registry.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(AltV1, TheGoldenFileIsReadFieldByField) {
  const Model model = read(read_annotated_hex("formats/alt/v1.hex"));
  EXPECT_EQ(model.origin.format, "alt-v1");
  EXPECT_THAT(model.warnings, IsEmpty());
  Card card;
  card.model_type = "mistral";
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
  config.sliding_window = 4096;
  EXPECT_EQ(model.config, config);

  Vocabulary vocabulary;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  vocabulary.unk_id = 0;
  vocabulary.max_length = 64;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  vocabulary.add("<s>", -1, TokenType::bos);
  vocabulary.add("</s>", -2, TokenType::eos);
  vocabulary.add("<0x0A>", -3, TokenType::byte);
  vocabulary.add(
      "\xe2\x96\x81"
      "a",
      -4, TokenType::normal);
  EXPECT_EQ(model.vocabulary, vocabulary);

  ASSERT_EQ(model.size(), 12U);
  EXPECT_EQ(model.tensors()[0].require("data").dtype, DType::f16);
  EXPECT_EQ(model.find("model.layers.0.mlp.down_proj.weight")->shape, (Shape{2, 3}));
}

TEST(AltV1, TheGoldenFileIsReproducedByteForByteAlsoByWayOfVersion2) {
  const auto golden = read_annotated_hex("formats/alt/v1.hex");
  EXPECT_EQ(written(read(golden), kAltV1), golden);
  EXPECT_EQ(written(read(written(read(golden), kAltV2)), kAltV1), golden);
}

TEST(AltV1, EveryWayOfWritingItIsReadAsTheSameModel) {
  const auto canonical = FileBuilder().v1();
  ASSERT_EQ(written(read(canonical), kAltV1), canonical);
  for (int combination = 0; combination < 3 << 2; ++combination) {
    FileBuilder builder;
    builder.sizes = static_cast<FileBuilder::Sizes>(combination >> 2);
    builder.size_twice = (combination & 1) != 0;
    builder.long_end_marker = (combination & 2) != 0;
    const Model model = read(builder.v1());
    EXPECT_EQ(model.warnings.empty(), combination == 0) << combination;
    EXPECT_EQ(written(model, kAltV1), canonical) << combination;
  }
}

TEST(AltV1, ARepeatedSizeMayCountAsPartOfTheHeader) {
  FileBuilder builder;
  builder.size_twice = true;
  builder.sizes = FileBuilder::Sizes::fields;
  auto bytes = builder.v1();
  const std::size_t tokenizer = 32 + 96;
  ASSERT_EQ(bytes[tokenizer], std::byte{0xFE});
  for (const std::size_t at : {tokenizer + 8, tokenizer + 16})
    bytes[at] = static_cast<std::byte>(std::to_integer<int>(bytes[at]) - 8);
  EXPECT_THAT(read(std::move(bytes)).warnings,
              Contains(Field(&Finding::message, HasSubstr("the section's size appears twice"))));
}

TEST(AltV1, WithoutAnOutputMatrixTheEmbeddingsAreTied) {
  Model model = read(FileBuilder().v1());
  Model tied;
  tied.config = model.config;
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.name != "lm_head.weight") tied.add(Tensor(tensor));
  }
  EXPECT_FALSE(read(written(model, kAltV1)).config->tie_word_embeddings);
  EXPECT_TRUE(read(written(tied, kAltV1)).config->tie_word_embeddings);
}

TEST(AltV1, ItsQuantizedTypeIsAPlainInteger) {
  Model model;
  model.add(make_dense("x", {3}, DType::i8, make_memory_blob(std::vector<std::byte>(3), "x")));
  const Model reread = read(written(model, kAltV1));
  EXPECT_EQ(reread.tensors()[0].require("data").dtype, DType::i8);
  EXPECT_EQ(reread.tensors()[0].layout, Layout::dense);
}

TEST(AltV1, QuantizedTensorsAreRefusedWithTheReason) {
  const Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  const Error error = error_of([&] { written(model, kAltV1); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(
      error.what(),
      HasSubstr("alt1 has no scales, so it cannot hold the quantized tensor model.layers.0.self_attn.k_proj.weight"));
}

// Version 1's reader refuses files with a negative length.
TEST(AltV1, ANegativeLengthIsRefused) {
  Model model = read(read_annotated_hex("formats/alt/v1.hex"));
  model.config->max_position_embeddings = -1;
  const Error error = error_of([&] { written(model, kAltV1); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("alt1: context_length: -1, expected 0 or more"));
}

TEST(AltV1, ReportsWhatConvertWouldChange) {
  const auto golden = read_annotated_hex("formats/alt/v1.hex");
  auto bytes = golden;
  const std::size_t data_type = 32 + 16 + 4 + 7 + 6 * 4 + 3 * 4;
  bytes[data_type] = bytes[data_type] ^ std::byte{1};
  const Model model = read(bytes);
  EXPECT_THAT(model.warnings,
              ElementsAre(Field(&Finding::message, HasSubstr("alt v1: parameters: data_type: expected"))));
  EXPECT_EQ(model.warnings[0].offset, data_type);
  EXPECT_EQ(written(model, kAltV1), golden);
}

TEST(AltV1, ReportsWhatItCannotHold) {
  Model model = read(FileBuilder().v2());
  EXPECT_THAT(losses_of(model, kAltV1, {}),
              ElementsAre("alt1 cannot hold base_model", "alt1 cannot hold author", "alt1 cannot hold created_at",
                          "alt1 cannot hold last_modified", "alt1 cannot hold license", "alt1 cannot hold uuid",
                          "alt1 cannot hold the tokens' scores: its readers prefer earlier tokens"));
  EXPECT_THAT(losses_of(read(read_annotated_hex("formats/alt/v1.hex")), kAltV1, {}), IsEmpty());
  EXPECT_THAT(losses_of(read(read_annotated_hex("formats/alt/v1.hex")), kAltV2, {}), IsEmpty());
}

// Version 1's readers have no other activation, so they would compute another model.
TEST(AltV1, OtherActivationsAreRefused) {
  Model model = read(read_annotated_hex("formats/alt/v1.hex"));
  for (const char* usual : {"silu", "swish", ""}) {
    model.config->hidden_act = usual;
    EXPECT_FALSE(written(model, kAltV1).empty()) << usual;
  }
  model.config->hidden_act = "gelu";
  const Error error = error_of([&] { written(model, kAltV1); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("alt1 cannot hold hidden_act \"gelu\""));
  EXPECT_THAT(error.remedies(), ElementsAre(Remedy{Remedy::Kind::format, "alt"}));
}

TEST(AltV1, AWrongFieldIsNamed) {
  auto bytes = FileBuilder().v1();
  bytes[32 + 16 + 4 + 7 + 6 * 4 + 3 * 4] = std::byte{9};
  const Error error = error_of([&] { read(std::move(bytes)); });
  EXPECT_THAT(error.what(), HasSubstr("alt v1: parameters: data_type: expected 0 to 2, found 9"));
  EXPECT_EQ(error.offset(), 95U);
}

}  // namespace
}  // namespace poise
