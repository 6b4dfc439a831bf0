// Files like those of other programs, from FileBuilder: each is read as the same model, and each deviation is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "formats/alt/alt_files.hpp"
#include "formats/alt/file_builder.hpp"
#include "formats/registry.hpp"

namespace poise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::SizeIs;
using Sizes = FileBuilder::Sizes;

auto warns(const std::string& text, std::uint64_t offset) {
  return Contains(AllOf(Field(&Finding::message, HasSubstr(text)), Field(&Finding::offset, Optional(offset))));
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Every combination of the dialects' differences is read as the same model, so converting it makes the same bytes.
TEST(AltDialects, EveryCombinationIsReadAsTheSameModel) {
  const auto canonical = FileBuilder().v2();
  ASSERT_EQ(written(read(canonical), kAltV2), canonical);
  for (int combination = 0; combination < 3 << 6; ++combination) {
    const auto bit = [&](int i) { return ((combination >> i) & 1) != 0; };
    FileBuilder builder;
    builder.start_marker = bit(0) ? 0x616C7463 : 0x616C7400;
    builder.alt_c_parameters = bit(1);
    builder.alt_c_tokens = bit(2);
    builder.alt_c_types = bit(3);
    builder.seq_len = !bit(4);
    builder.short_end_marker = bit(5);
    builder.sizes = static_cast<Sizes>(combination >> 6);
    SCOPED_TRACE(combination);
    Model model = read(builder.v2());
    EXPECT_EQ(model.warnings.empty(), combination == 0);
    EXPECT_EQ(model.vocabulary->max_length, bit(4) ? 0 : 64);
    model.vocabulary->max_length = 64;
    EXPECT_EQ(written(model, kAltV2), canonical);
  }
}

TEST(AltDialects, AltCOfJanuary2025IsNamedAndEachDeviationReported) {
  FileBuilder builder;
  builder.sizes = Sizes::fields_without_ids;
  builder.alt_c_parameters = builder.alt_c_tokens = builder.alt_c_types = true;
  builder.seq_len = builder.tensors = false;
  const Model model = read(builder.v2());
  ASSERT_FALSE(model.warnings.empty());
  EXPECT_THAT(model.warnings[0].message, HasSubstr("alt.c, January 2025"));
  EXPECT_THAT(model.warnings, warns("start: section_size: counts the fields only: expected 32, found 8", 8));
  EXPECT_THAT(model.warnings, warns("general: section_size: counts the fields only: expected 160, found 118", 40));
  EXPECT_THAT(
      model.warnings,
      warns("parameters: rope_theta: expected rope_theta, rms_norm_eps, initializer_range, head_size; found", 245));
  EXPECT_THAT(model.warnings, warns("tokenizer: seq_len: the field is missing", 324));
  EXPECT_THAT(model.warnings, warns("tokenizer: token: expected text, score, type; found score, type, id, text", 324));
  EXPECT_THAT(model.warnings, warns("tokenizer: section_size: counts the fields less 20 bytes", 296));
  EXPECT_THAT(model.warnings, warns("tokenizer: token_type: numbered as by alt.c", 304));
  EXPECT_THAT(model.warnings, warns("tensors: the section is missing", 448));
  EXPECT_THAT(model.warnings, SizeIs(10));
  EXPECT_EQ(model.vocabulary->type(0), TokenType::unknown);
  EXPECT_EQ(model.vocabulary->type(1), TokenType::bos);
  EXPECT_EQ(model.vocabulary->type(3), TokenType::byte);
  EXPECT_EQ(model.config->head_dim, 2);
  EXPECT_EQ(model.config->rope_theta, 10000);
}

TEST(AltDialects, AltCOfDecember2024IsNamed) {
  FileBuilder builder;
  builder.sizes = Sizes::fields;
  builder.alt_c_parameters = true;
  builder.seq_len = builder.tensors = false;
  EXPECT_THAT(read(builder.v2()).warnings.at(0).message, HasSubstr("alt.c, December 2024"));
}

TEST(AltDialects, AnySectionMayBeMissing) {
  for (int present = 0; present < 16; ++present) {
    FileBuilder builder;
    builder.general = (present & 1) != 0;
    builder.parameters = (present & 2) != 0;
    builder.tokenizer = (present & 4) != 0;
    builder.tensors = (present & 8) != 0;
    const Model model = read(builder.v2());
    EXPECT_EQ(model.warnings.size(), static_cast<std::size_t>(4 - std::popcount(static_cast<unsigned>(present))));
    EXPECT_EQ(model.card.model_type.empty(), !builder.general);
    EXPECT_EQ(model.config.has_value(), builder.parameters);
    EXPECT_EQ(model.vocabulary.has_value(), builder.tokenizer);
    EXPECT_EQ(model.size(), builder.tensors ? 12U : 0U);
    if (model.config) {
      EXPECT_EQ(model.config->vocab_size, builder.tokenizer || builder.tensors ? 5 : 0);
    }
  }
}

TEST(AltDialects, TheNumberingFollowsTheUnknownTokenAndTheByteTokens) {
  FileBuilder builder;
  builder.tokens = {{"<unk>", 0, 3, 1}, {"a", 0, 0, 0}};
  builder.alt_c_types = true;
  EXPECT_EQ(read(builder.v2()).vocabulary->type(0), TokenType::unknown);
  builder.tokens = {{"x", 0, 0, 0}, {"<0x00>", 0, 1, 4}};
  EXPECT_EQ(read(builder.v2()).vocabulary->type(1), TokenType::byte);
  // Neither token decides, so the order of the record does.
  builder.tokens = {{"x", 0, 0, 0}, {"<s>", 0, 5, 6}, {"</s>", 0, 6, 7}, {"y", 0, 4, 5}};
  builder.alt_c_tokens = true;
  EXPECT_EQ(read(builder.v2()).vocabulary->type(3), TokenType::unused);
  builder.alt_c_tokens = builder.alt_c_types = false;
  EXPECT_EQ(read(builder.v2()).vocabulary->type(3), TokenType::unused);
}

TEST(AltDialects, ContradictoryNumberingsAreReportedAndReadAsCanonical) {
  FileBuilder builder;
  builder.tokens = {{"<unk>", 0, 3, 1}, {"<s>", 0, 5, 6}, {"</s>", 0, 6, 7}, {"<0x00>", 0, 4, 4}};
  const Model model = read(builder.v2());
  EXPECT_EQ(model.vocabulary->type(3), TokenType::unused);
  EXPECT_THAT(model.warnings, warns("different numberings", 304));
}

// The types become those of the canonical form of the same tokens.
TEST(AltDialects, TokensAtSpecialIdsGetTheTypesOfThese) {
  FileBuilder canonical;
  FileBuilder builder;
  builder.tokens[1].type = 2;  // control, as SentencePiece has it
  builder.tokens[2].type = 0;
  const Model model = read(builder.v2());
  EXPECT_EQ(model.vocabulary, read(canonical.v2()).vocabulary);
  EXPECT_THAT(model.warnings, warns("token_type: token 1: expected bos, found control", 304));
  EXPECT_THAT(model.warnings, warns("token_type: token 2: expected eos, found normal", 304));
  builder.tokens[2].type = 4;
  EXPECT_EQ(read(builder.v2()).vocabulary->type(2), TokenType::eos);
  builder.tokens[2].type = 1;  // a byte token keeps its type
  EXPECT_EQ(read(builder.v2()).vocabulary->type(2), TokenType::byte);
}

TEST(AltDialects, TimestampsBecomeDatesAndNegativeWindowsNone) {
  FileBuilder builder;
  builder.created_at = "2023-09-20T13:03:50+00:00";
  builder.sliding_window = -1;
  const Model model = read(builder.v2());
  EXPECT_EQ(model.card.created_at, "2023-09-20");
  EXPECT_EQ(model.config->sliding_window, 0);
  EXPECT_THAT(model.warnings, warns("created_at: expected YYYY-MM-DD, found a timestamp", 84));
  EXPECT_THAT(model.warnings, warns("sliding_window: expected 0 for none, found -1", 241));
}

TEST(AltDialects, DirtyPaddingIsReported) {
  // The last byte of each section is padding.
  for (const std::uint64_t offset : {31U, 191U, 287U, 415U}) {
    auto bytes = FileBuilder().v2();
    bytes[offset] = std::byte{7};
    EXPECT_THAT(read(std::move(bytes)).warnings, ElementsAre(Field(&Finding::offset, Optional(offset)))) << offset;
  }
}

// Bytes that look like padding belong to a record that another reading understands.
TEST(AltDialects, AReadingThatLeavesRecordsInThePaddingIsRejected) {
  FileBuilder builder;
  builder.tokens = {{"x", 0, 0, 0}, {"y", 0, 4, 5}};
  builder.alt_c_tokens = true;
  const Model model = read(builder.v2());
  EXPECT_EQ(model.vocabulary->text(0), "x");
  EXPECT_EQ(model.vocabulary->text(1), "y");
}

TEST(AltDialects, HintsThatDisagreeWithTheNameAreReported) {
  auto bytes = read_annotated_hex("formats/alt/v2.hex");
  const std::uint64_t tensor = 0x1a0 + 40;  // the first of the section that begins at 0x1a0
  put<std::int32_t>(bytes, tensor, 3);
  put<std::int32_t>(bytes, tensor + 4, 5);
  put<std::int32_t>(bytes, tensor + 8, 1);
  put<std::int32_t>(bytes, tensor + 12, 2);
  const Model model = read(std::move(bytes));
  EXPECT_THAT(
      model.warnings,
      ElementsAre(Field(&Finding::message,
                        HasSubstr("tensor 0: component_type: expected 1 for model.embed_tokens.weight, found 3")),
                  Field(&Finding::message, HasSubstr("block_index: expected -1")),
                  Field(&Finding::message, HasSubstr("layer_type: expected 0")),
                  Field(&Finding::message, HasSubstr("projection_type: expected 0"))));
  EXPECT_EQ(model.warnings[3].offset, tensor + 12);
}

// Puts the tensors' records of the golden file in another order: the last one first.
std::vector<std::byte> last_tensor_first(const std::vector<std::byte>& file) {
  const std::string name = "lm_head.weight";
  const std::uint64_t first = 0x1a0 + 40;  // of the section that begins at 0x1a0
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::uint64_t last = text.find(name) - 4 - 2 * 4 - 4 - 16;  // length, two dimensions, n_dims, four hints
  const std::uint64_t end = text.find(name) + name.size() + 4 + 12 + 1 + read(file).find(name)->size_bytes();
  auto moved = file;
  std::rotate(moved.begin() + static_cast<std::ptrdiff_t>(first), moved.begin() + static_cast<std::ptrdiff_t>(last),
              moved.begin() + static_cast<std::ptrdiff_t>(end));
  return moved;
}

// `poise inspect` lists what `poise convert` would change.
TEST(AltDialects, TensorsInAnotherOrderAreReported) {
  const auto golden = read_annotated_hex("formats/alt/v2.hex");
  const Model model = read(last_tensor_first(golden));
  EXPECT_THAT(
      model.warnings,
      ElementsAre(Field(&Finding::message,
                        HasSubstr("tensors: order: expected model.embed_tokens.weight as tensor 0, found lm_head"))));
  EXPECT_EQ(model.warnings[0].offset, 0x1a0U + 40);
  EXPECT_EQ(written(model, kAltV2), golden);
}

TEST(AltDialects, UnpackedCodesAreReported) {
  Model model;
  Tensor tensor = make_dense("t", {2}, DType::qint4, make_memory_blob(std::vector<std::byte>(2), "t"));
  tensor.layout = make_affine({1, 0, 0, true});
  tensor.parts[0].blob = make_memory_blob(std::vector<std::byte>(1), "t");
  model.add(std::move(tensor));
  auto bytes = written(model, kAltV2);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::uint64_t flag = text.rfind('t') + 1 + 4 + 12;
  ASSERT_EQ(bytes[flag], std::byte{1});
  bytes[flag] = std::byte{0};  // the padding has room for the second byte
  const Model reread = read(bytes);
  EXPECT_THAT(reread.warnings, warns("tensor 0: packing_flag: expected 1 for qint4, found 0", flag));
  bytes[flag] = std::byte{1};
  EXPECT_EQ(written(reread, kAltV2), bytes);
}

TEST(AltDialects, AScaleWithoutARangeIsReportedAndReadAsSymmetric) {
  auto bytes = read_annotated_hex("formats/alt/v2.hex");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string name = "model.layers.0.self_attn.k_proj.weight";
  const std::size_t min = text.find(name) + name.size() + 4 + 4;
  put(bytes, min, 3.0F);
  put(bytes, min + 4, 3.0F);
  const Model model = read(bytes);
  EXPECT_THAT(model.warnings,
              ElementsAre(Field(&Finding::message,
                                HasSubstr("min: expected min and max of 0 for symmetric codes, found 3 and 3"))));
  EXPECT_EQ(written(model, kAltV2), read_annotated_hex("formats/alt/v2.hex"));
}

// -0 is the same number as 0 in other bytes.
TEST(AltDialects, NegativeZeroIsReported) {
  Model model;
  model.add(make_dense("t", {}, DType::f32, make_memory_blob(std::vector<std::byte>(4), "t")));
  const auto canonical = written(model, kAltV2);
  auto bytes = canonical;
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t delta = text.rfind('t') + 1 + 4;
  put(bytes, delta, -0.0F);
  const Model reread = read(bytes);
  EXPECT_THAT(reread.warnings,
              warns("tensor 0: delta: expected delta, min and max of 0 for f32, found -0, 0 and 0", delta));
  EXPECT_EQ(written(reread, kAltV2), canonical);
}

TEST(AltDialects, ASymmetricRangeBelowZeroIsReported) {
  auto bytes = read_annotated_hex("formats/alt/v2.hex");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string name = "model.layers.0.self_attn.k_proj.weight";
  put(bytes, text.find(name) + name.size() + 4 + 4, -0.0F);
  const Model model = read(bytes);
  EXPECT_THAT(model.warnings,
              ElementsAre(Field(&Finding::message,
                                HasSubstr("min: expected min and max of 0 for symmetric codes, found -0 and 0"))));
  EXPECT_EQ(written(model, kAltV2), read_annotated_hex("formats/alt/v2.hex"));
}

TEST(AltDialects, WrongHintsOfOtherTensorsAreReported) {
  Model model;
  for (const char* name : {"x", "y"})
    model.add(make_dense(name, {}, DType::f32, make_memory_blob(std::vector<std::byte>(4), name)));
  const auto canonical = written(model, kAltV2);
  auto bytes = canonical;
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t block = text.rfind('y') - 4 - 4 - 12;
  put<std::int32_t>(bytes, block, -9);
  const Model reread = read(bytes);
  EXPECT_THAT(reread.warnings, warns("tensor 1: block_index: expected -5 for y, found -9", block));
  EXPECT_EQ(written(reread, kAltV2), canonical);
}

TEST(AltDialects, AnOutputMatrixNextToTiedEmbeddingsIsKept) {
  Model model = read(read_annotated_hex("formats/alt/v2.hex"));
  ASSERT_NE(model.find("lm_head.weight"), nullptr);
  model.config->tie_word_embeddings = true;
  const Model opened = open(Source::from_memory(written(model, kAltV2), "a.alt"));
  EXPECT_THAT(opened.warnings, ElementsAre(Field(&Finding::message,
                                                 HasSubstr("lm_head.weight differs from model.embed_tokens.weight"))));
  EXPECT_FALSE(opened.config->tie_word_embeddings);
  EXPECT_NE(opened.find("lm_head.weight"), nullptr);
}

// The reading that understands more of the file is closer; among equals, the canonical one is first.
TEST(AltErrors, AFileThatFitsNoDialectGetsTheErrorOfTheClosestReading) {
  auto bytes = FileBuilder().v2();
  put<std::int64_t>(bytes, 296, 1234);  // section_size of the tokenizer
  const Error size = error_of([&] { read(std::move(bytes)); });
  EXPECT_EQ(size.offset(), 296U);
  EXPECT_THAT(
      size.what(),
      HasSubstr("alt v2: tokenizer: section_size: expected 128 (or 119 or 103, as other writers count), found 1234"));

  FileBuilder builder;
  builder.alt_c_tokens = true;
  builder.seq_len = false;
  builder.sizes = Sizes::fields_without_ids;
  bytes = builder.v2();
  put<std::int32_t>(bytes, 324 + (16 + 5) + (16 + 3) + 8, 7);  // the id of token 2
  const Error id = error_of([&] { read(std::move(bytes)); });
  EXPECT_THAT(id.what(), HasSubstr("token 2: token_id: expected 2, found 7"));
}

TEST(AltErrors, NameFieldOffsetExpectedAndFound) {
  struct Case {
    std::size_t offset;
    std::int32_t value;
    const char* message;
    std::uint64_t at;
  };
  const Case cases[] = {
      {16, 3, "start: magic_version: expected 2, found 3", 16},
      {20, 64, "start: magic_alignment: expected 32, found 64", 20},
      {48, -1, "general: model_type: length: expected 0 or more, found -1", 48},
      {48, 0x7fffffff, "general: model_type: text: 2147483647 bytes wanted", 52},
      {32, 0x1234, "section_marker: expected a section or the end marker 0xfffffff, found 0x1234", 32},
      {192, static_cast<std::int32_t>(0xCAFEBABE), "section_marker: the general section appears twice or too late",
       192},
      {304, 290000, "tokenizer: vocab_size: 290000 tokens need at least 12 bytes each", 304},
      {304, 1000000, "tokenizer: vocab_size: 1000000 tokens, at most 500000 are allowed", 304},
      {0x1a0 + 16, 13, "tensors: tensor 12: max: 4 bytes wanted, 2 left", 0x6a6},
      {0x1a0 + 24, 22, "tensors: shape_count: the tensors have 21 dimensions, found 22", 0x1a0 + 24},
      {0x1a0 + 32, 2, "tensors: block_count: the tensors belong to 1 layers, found 2", 0x1a0 + 32},
      {0x1a0 + 36, 2, "tensors: unique_count: 3 tensors are outside the layers, found 2", 0x1a0 + 36},
      {0x1a0 + 56, 65, "tensors: tensor 0: n_dims: expected at most 64, found 65", 0x1a0 + 56},
      {0x1a0 + 60, -5, "tensors: tensor 0: dimension: expected 0 or more, found -5", 0x1a0 + 60},
      {0x1a0 + 97, 5, "tensors: tensor 0: data_type: expected 0 to 4, found 5", 0x1a0 + 97},
  };
  for (const Case& wrong : cases) {
    auto bytes = FileBuilder().v2();
    put(bytes, wrong.offset, wrong.value);
    const Error error = error_of([&] { read(std::move(bytes)); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << wrong.message;
    EXPECT_THAT(error.what(), HasSubstr(wrong.message));
    EXPECT_EQ(error.offset(), wrong.at) << error.what();
  }
}

TEST(AltErrors, ASectionBeyondTheEndIsReportedAsACutFile) {
  auto bytes = FileBuilder().v2();
  const std::size_t whole = bytes.size();
  bytes.resize(bytes.size() - 100);
  const Error error = error_of([&] { read(std::move(bytes)); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("tensors: section_size: the section needs"), HasSubstr("it is cut off")));
  EXPECT_LT(error.offset().value(), whole);
}

TEST(AltErrors, BytesAfterTheEndMarkerAreRefused) {
  auto bytes = FileBuilder().v2();
  bytes.push_back(std::byte{0});
  EXPECT_THAT(error_of([&] { read(std::move(bytes)); }).what(),
              HasSubstr("end marker: expected 8 bytes and the end of the file, found 9 bytes"));
}

TEST(AltErrors, ARepeatedTensorNameIsRefused) {
  auto bytes = FileBuilder().v2();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find("model.layers.0.self_attn.v_proj");
  std::memcpy(bytes.data() + at + 25, "k", 1);
  EXPECT_THAT(error_of([&] { read(std::move(bytes)); }).what(),
              HasSubstr("name: \"model.layers.0.self_attn.k_proj.weight\" appears twice"));
}

TEST(AltErrors, TextThatIsNotUtf8IsRefused) {
  auto bytes = FileBuilder().v2();
  bytes[52] = std::byte{0xff};
  EXPECT_THAT(error_of([&] { read(std::move(bytes)); }).what(), HasSubstr("general: model_type: text: expected UTF-8"));
}

}  // namespace
}  // namespace poise
