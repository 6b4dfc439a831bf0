// The tables of docs/formats/llama2c.md: Poise reads headers that are made from them.
#include <gtest/gtest.h>

#include <map>

#include <fmt/format.h>

#include "family/config_json.hpp"
#include "formats/llama2c/llama2c.hpp"
#include "support/bytes.hpp"
#include "support/page_tables.hpp"

namespace poise::page {
namespace {

// Returns a header of llama2.c with these values at the page's offsets.
std::string llama2c_header(std::string_view heading, const std::map<std::string, std::int64_t>& values,
                           std::uint64_t bytes) {
  std::string header(bytes, '\0');
  for (const Row& row : table("llama2c", "| offset | type | field |", heading)) {
    if (row.at(1).empty()) continue;
    const std::string name = row.at(2).starts_with("version: ")   ? "version"
                             : row.at(1) == "u8"                  ? "shared"
                             : row.at(2).starts_with("version 2") ? "group_size"
                                                                  : code(row.at(2));
    const std::int64_t value = name.starts_with("0x") ? std::stoll(name, nullptr, 16) : values.at(name);
    const std::string bits = support::le(static_cast<std::uint64_t>(value), row.at(1) == "u8" ? 1 : 4);
    header.replace(count(row.at(0)), bits.size(), bits);
  }
  return header;
}

llama2c::Header read_llama2c(const std::string& bytes) {
  const SourcePtr source = support::source(bytes, "test.bin");
  ByteReader reader(*source, "llama2c");
  return llama2c::read_header(reader);
}

// Each field begins where the one before it ends.
void expect_no_gaps(std::string_view heading) {
  const Table rows = table("llama2c", "| offset | type | field |", heading);
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    const std::string& type = rows[i].at(1);
    const std::map<std::string, std::uint64_t> bytes = {{"u8", 1}, {"i32", 4}, {"u32", 4}};
    if (type.empty()) continue;  // padding
    ASSERT_TRUE(bytes.contains(type)) << type;
    EXPECT_EQ(count(rows[i].at(0)) + bytes.at(type), count(rows[i + 1].at(0))) << heading << " " << rows[i].at(2);
  }
}

TEST(Llama2cPage, Headers) {
  expect_no_gaps("## Version 0");
  expect_no_gaps("## Versions 1 and 2");
  std::map<std::string, std::int64_t> values = {{"dim", 8},        {"hidden_dim", 12}, {"n_layers", 3}, {"n_heads", 2},
                                                {"n_kv_heads", 1}, {"vocab_size", -5}, {"seq_len", 7},  {"version", 2},
                                                {"shared", 0},     {"group_size", 4}};
  const auto expect = [&](const llama2c::Header& header, std::int32_t version) {
    EXPECT_EQ(header.version, version);
    EXPECT_EQ(header.config.hidden_size, 8);
    EXPECT_EQ(header.config.intermediate_size, 12);
    EXPECT_EQ(header.config.num_hidden_layers, 3);
    EXPECT_EQ(header.config.num_attention_heads, 2);
    EXPECT_EQ(header.config.num_key_value_heads, 1);
    EXPECT_EQ(header.config.vocab_size, 5);
    EXPECT_EQ(header.config.max_position_embeddings, 7);
    EXPECT_FALSE(header.config.tie_word_embeddings);
  };
  const auto begin_of_arrays = [](std::string_view heading) {
    return count(table("llama2c", "| offset | type | field |", heading).back().at(0));
  };
  const std::uint64_t begin0 = begin_of_arrays("## Version 0");
  const auto header0 = read_llama2c(llama2c_header("## Version 0", values, begin0));
  expect(header0, 0);
  EXPECT_EQ(header0.data_begin, begin0);
  values["vocab_size"] = 5;
  const std::uint64_t begin2 = begin_of_arrays("## Versions 1 and 2");
  const auto header2 = read_llama2c(llama2c_header("## Versions 1 and 2", values, begin2));
  expect(header2, 2);
  EXPECT_EQ(header2.group_size, 4U);
  EXPECT_EQ(header2.data_begin, begin2);
  values["shared"] = 1;
  EXPECT_TRUE(read_llama2c(llama2c_header("## Versions 1 and 2", values, begin2)).config.tie_word_embeddings);
  const Table keys = table("llama2c", "| key of config.json | value |");
  EXPECT_EQ(keys.size(), 4U);
  for (const Row& row : keys) {
    const Value found = *config_to_attributes(header2.config, "llama").find(code(row.at(0)));
    const std::string text = code(row.at(1));
    EXPECT_EQ(found, text.empty() ? Value(std::stod(row.at(1))) : Value(text)) << row.at(0);
  }
}

TEST(Llama2cPage, Arrays) {
  const Sizes sizes = {{"dim", 8},  {"hidden_dim", 12}, {"n_kv_heads", 1},
                       {"head", 4}, {"vocab_size", 5},  {"seq_len", 7}};
  llama2c::Header header;
  header.config.hidden_size = 8;
  header.config.intermediate_size = 12;
  header.config.num_attention_heads = 2;
  header.config.num_key_value_heads = 1;
  header.config.head_dim = 4;
  header.config.vocab_size = 5;
  header.config.max_position_embeddings = 7;
  header.config.tie_word_embeddings = false;
  const Table rows = table("llama2c", "| in version 0 | in 1 and 2 |");
  for (const std::size_t column : {0U, 1U}) {
    header.version = static_cast<std::int32_t>(column);
    std::map<std::uint64_t, Row> in_order;
    for (const Row& row : rows) {
      if (!row.at(column).empty()) in_order[count(row.at(column))] = row;
    }
    const auto arrays = llama2c::list_arrays(header);
    ASSERT_EQ(in_order.size(), arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const Row& row = in_order.at(i + 1);
      const llama2c::FileArray& array = arrays[i];
      const std::string prefix = array.is_of_layers ? "model.layers.N." : "";
      EXPECT_EQ(code(row.at(2)), array.file_name);
      EXPECT_EQ(row.at(3), array.is_of_layers ? "yes" : "") << array.file_name;
      EXPECT_EQ(code(row.at(5)), array.name.empty() ? "" : prefix + std::string(array.name));
      const Shape shape = array.rows == 1 && !array.is_matrix ? Shape{array.columns} : Shape{array.rows, array.columns};
      EXPECT_EQ(shape_of(row.at(4), sizes), shape) << array.file_name;
    }
  }
}

}  // namespace
}  // namespace poise::page
