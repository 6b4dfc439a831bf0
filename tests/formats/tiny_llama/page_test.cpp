// The tables of docs/formats/tiny-llama.md compared with those of the code, and with an example file.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/format.hpp>

#include "family/families.hpp"
#include "formats/tiny_llama/tiny_llama.hpp"
#include "model/limits.hpp"
#include "support/bytes.hpp"
#include "support/page_tables.hpp"
#include "tokenizer/files/files.hpp"

namespace poise::page {
namespace {

TEST(TinyLlamaPage, Header) {
  const std::string file = support::contents(source_directory() / "examples/nano-tiny-llama/weights.tllm");
  const Model model = open(source_directory() / "examples/nano-tiny-llama/weights.tllm");
  const Config& config = *model.config;
  FieldReader reader(support::to_bytes(file));
  const std::vector<std::string> expected = {fmt::format("{}", tiny_llama::kMagic),
                                             fmt::format("{}", tiny_llama::kVersion),
                                             fmt::format("{}", config.hidden_size),
                                             fmt::format("{}", config.num_hidden_layers),
                                             fmt::format("{}", config.num_attention_heads),
                                             fmt::format("{}", config.intermediate_size),
                                             fmt::format("{}", config.max_position_embeddings),
                                             fmt::format("{}", config.vocab_size),
                                             fmt::format("{}", config.dropout)};
  const Table rows = table("tiny-llama", "| offset | type | field | rule |");
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(reader.position(), count(rows[i].at(0)));
    EXPECT_EQ(reader.field(rows[i].at(1)), expected[i]) << rows[i].at(2);
  }
  EXPECT_EQ(reader.position(), tiny_llama::kHeaderBytes);
  EXPECT_EQ(code(rows[0].at(3)), fmt::format("0x{:X}", tiny_llama::kMagic));
  EXPECT_EQ(count(rows[1].at(3)), tiny_llama::kVersion);
  const std::string most = fmt::format("1 to {},{:03}", kMaxLayers / 1000, kMaxLayers % 1000);
  EXPECT_TRUE(rows[3].at(3).starts_with(most)) << rows[3].at(3);
  EXPECT_TRUE(rows[4].at(3).starts_with(most)) << rows[4].at(3);
  EXPECT_TRUE(rows[4].at(3).ends_with(most.substr(most.rfind(' ')))) << rows[4].at(3);
}

TEST(TinyLlamaPage, Arrays) {
  const Sizes sizes = {{"D", 6}, {"F", 10}, {"S", 7}, {"V", 11}};
  Config config;
  config.hidden_size = 6;
  config.intermediate_size = 10;
  config.max_position_embeddings = 7;
  config.vocab_size = 11;
  config.num_hidden_layers = 1;
  config.num_attention_heads = config.num_key_value_heads = 2;
  config.head_dim = 3;
  const auto expected = poise::tiny_llama::kTinyLlamaFamily.tensors.list_all(config);
  const Table rows = table("tiny-llama", "| tensor in Poise | shape | bytes |");
  ASSERT_EQ(rows.size(), expected.size());
  std::uint64_t bytes = tiny_llama::kHeaderBytes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(code(rows[i].at(0)), expected[i].name);
    EXPECT_EQ(shape_of(rows[i].at(1), sizes), expected[i].shape) << expected[i].name;
    bytes += sum(rows[i].at(2), sizes);
  }
  EXPECT_EQ(tiny_llama::compute_file_size(config), bytes);
}

TEST(TinyLlamaPage, SpecialTokens) {
  const auto folder = source_directory() / "examples/nano-tiny-llama";
  const Vocabulary vocabulary =
      read_byte_pair_vocabulary(*Source::open(folder / "vocab.txt"), *Source::open(folder / "merges.txt"));
  const Table rows = table("tiny-llama", "| id | token |");
  for (const Row& row : rows) {
    const auto id = static_cast<std::size_t>(count(row.at(0)));
    EXPECT_EQ(vocabulary.text(id), code(row.at(1)));
    EXPECT_NE(vocabulary.type(id), TokenType::normal);
  }
  for (std::size_t id = rows.size(); id < vocabulary.size(); ++id)
    EXPECT_EQ(vocabulary.type(id), TokenType::normal) << id;
}

}  // namespace
}  // namespace poise::page
