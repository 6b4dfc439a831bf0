// The dialect of alt.c. FileBuilder lays out files like those of its converter of January 2025.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/alt/alt_files.hpp"
#include "formats/alt/file_builder.hpp"
#include "formats/registry.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

WriteOptions for_alt_c() {
  WriteOptions options;
  options.dialect = "alt.c";
  return options;
}

TEST(AltC, ItsFilesAreWrittenByteForByte) {
  FileBuilder builder;
  builder.sizes = FileBuilder::Sizes::fields_without_ids;
  builder.alt_c_parameters = builder.alt_c_tokens = builder.alt_c_types = true;
  builder.seq_len = builder.tensors = false;
  EXPECT_EQ(written(read(FileBuilder().v2()), kAltV2, for_alt_c()), builder.v2());
}

TEST(AltC, ReportsWhatIsLeftOut) {
  Model model = read(FileBuilder().v2());
  model.card.license.clear();
  EXPECT_THAT(losses_of(model, kAltV2, for_alt_c()),
              ElementsAre("alt.c's dialect cannot hold tensors: 12 are left out",
                          "alt.c's dialect cannot hold the vocabulary's max_length",
                          "alt.c refuses empty texts, so \"unknown\" is written for license"));
  EXPECT_EQ(read(written(model, kAltV2, for_alt_c())).card.license, "unknown");
}

TEST(AltC, RefusesModelsThatItsReaderRefuses) {
  const auto refusal = [](const Model& model) {
    return std::string(error_of([&] { written(model, kAltV2, for_alt_c()); }).what());
  };
  EXPECT_THAT(refusal(Model()), HasSubstr("has no configuration"));
  Model model = read(FileBuilder().v2());
  model.vocabulary->add("", 0, TokenType::normal);
  EXPECT_THAT(refusal(model), HasSubstr("token 5 is empty"));
  model = read(FileBuilder().v2());
  model.vocabulary->add("a", 0, TokenType::normal);
  EXPECT_THAT(refusal(model), HasSubstr("texts that appear twice, and token 5 does"));
  for (int i = 0; i < 32000; ++i) model.vocabulary->add(std::to_string(i), 0, TokenType::normal);
  EXPECT_THAT(refusal(model), HasSubstr("takes 1 to 32000 tokens, the vocabulary has 32006"));
  model.vocabulary.reset();
  EXPECT_THAT(refusal(model), HasSubstr("the model has no vocabulary"));
}

TEST(AltC, NumbersThatReadersTakeInTheOtherOrderAreRefused) {
  Model model = read(FileBuilder().v2());
  model.config->rope_theta = 1e-38F;  // below the normal range, so not a base of rotary embeddings
  const Error error = error_of([&] { written(model, kAltV2, for_alt_c()); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("parameters: rope_theta: with 1e-38 and a head_size of 2, readers would assume "
                                      "the field order of the canonical form"));
  model.config->rope_theta = 10000;
  model.config->head_dim = 100000;
  EXPECT_THAT(error_of([&] { written(model, kAltV2, for_alt_c()); }).what(), HasSubstr("a head_size of 100000"));
}

TEST(AltC, UnknownDialectsAreRefusedWithAListOfKnownOnes) {
  WriteOptions options;
  options.dialect = "alt.rs";
  const Error error = error_of([&] { written(read(FileBuilder().v2()), kAltV2, options); });
  EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
  EXPECT_THAT(error.what(), HasSubstr("alt has no dialect \"alt.rs\", only alt.c"));
  EXPECT_EQ(error_of([&] { written(read(FileBuilder().v1()), kAltV1, for_alt_c()); }).kind(), ErrorKind::bad_argument);
}

}  // namespace
}  // namespace poise
