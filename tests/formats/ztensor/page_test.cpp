// The tables of docs/formats/ztensor.md compared with those of the code.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include <poise/format.hpp>

#include "formats/metadata.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt2.hpp"
#include "model/limits.hpp"
#include "support/page_tables.hpp"
#include "tensor/group_scheme.hpp"
#include "tokenizer/kinds.hpp"

namespace poise::page {
namespace {

TEST(ZtensorPage, Limits) {
  expect_limits(table("ztensor", "| limit | value |"),
                {{"smallest file", ztensor::kLeastFileBytes2},
                 {"footer", ztensor::kFooterBytes2},
                 {"largest manifest", kMaxManifestBytes},
                 {"alignment of blobs", ztensor::kLeastAlignment2},
                 {"alignment that Poise writes", ztensor::kCanonicalAlignment2},
                 {"longest name", kMaxNameBytes2},
                 {"longest name of a shard", kMaxShardNameBytes2},
                 {"longest name of a type, layout, encoding or digest", kMaxTypeNameBytes},
                 {"rank", kMaxRank},
                 {"shards", kMaxShards}});
}

TEST(ZtensorPage, TypesOfVersion2) {
  const Table rows = table("ztensor", "| `dtype` | `type` | bits of an element |");
  EXPECT_EQ(rows.size(), ztensor::kSpellings2.size());
  std::set<DType> listed;
  for (const Row& row : rows) {
    const auto dtype = ztensor::find_stored_dtype(code(row.at(0)), code(row.at(1)));
    ASSERT_TRUE(dtype) << row.at(0) << row.at(1);
    listed.insert(*dtype);
    EXPECT_EQ(info(*dtype).bits, count(row.at(2))) << row.at(0) << row.at(1);
  }
  EXPECT_EQ(listed.size(), ztensor::kSpellings2.size());
}

TEST(ZtensorPage, TypesOfVersions0And1) {
  const Table rows = table("ztensor", "| `dtype` | bytes of an element |");
  EXPECT_EQ(rows.size(), ztensor::kSpellings1.size());
  std::size_t older = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.at(0));
    const std::string name = code(row.at(0));
    const auto dtype = find_spelled_dtype(ztensor::kSpellings1, std::string_view(name));
    ASSERT_TRUE(dtype);
    EXPECT_EQ(info(*dtype).bits, 8 * count(row.at(1)));
    EXPECT_EQ(ztensor::find_stored_dtype(code(row.at(2)), code(row.at(3))), dtype);
    EXPECT_EQ(code(row.at(4)), find_spelling(ztensor::kSpellings0, *dtype).value_or(""));
    older += row.at(4).empty() ? 0U : 1U;
  }
  EXPECT_EQ(older, ztensor::kSpellings0.size());
}

// Returns the page's name of an attribute's type.
std::string type_of(const Value& value) {
  if (value.get_if<std::string>() != nullptr) return "text";
  return value.get_if<Attributes>() != nullptr ? "map" : "integer";
}

// Returns the attributes of a table with their types; those in a map as "map key". `zero`: the zero point.
std::map<std::string, std::string> group_attributes(std::optional<std::int64_t> zero) {
  std::map<std::string, std::string> types;
  for (const auto& [key, value] : make_byte_code_attributes(1, 0, zero)) {
    types[key] = type_of(value);
    const auto* map = value.get_if<Attributes>();
    if (map == nullptr) continue;
    for (const auto& [inner, item] : *map) types[key + " " + inner] = type_of(item);
  }
  return types;
}

// The page requires all of these attributes. Poise reads a scheme with exactly these.
TEST(ZtensorPage, AttributesOfGroups) {
  auto expected = group_attributes(0);
  expected.merge(group_attributes(std::nullopt));  // zero_point has value or packing
  std::map<std::string, std::string> listed;
  for (const Row& row : table("ztensor", "| attribute | type | value |")) {
    const auto names = codes(row.at(0));
    EXPECT_TRUE(is_group_scheme_attribute(names.at(0))) << names.at(0);
    const auto types =
        row.at(1) == "integer or text" ? std::vector<std::string>{"integer", "text"} : std::vector{row.at(1)};
    if (names.size() == 1) listed[names[0]] = row.at(1);
    for (std::size_t i = 1; i < names.size(); ++i) listed[names[0] + " " + names[i]] = types.at(i - 1);
  }
  EXPECT_EQ(listed, expected);
}

TEST(ZtensorPage, KeysOfVocabularies) {
  const Model model = open(source_directory() / "examples/nano-mistral");
  const Value json = parse_json(make_vocabulary_json(*model.vocabulary), "poise.vocabulary");
  std::set<std::string> expected = {"merges", "pipeline", "chat_template", "tokenizer_config", "files"};  // optional
  for (const auto& [key, value] : *json.get_if<Attributes>()) expected.insert(key);
  std::set<std::string> listed;
  for (const Row& row : table("ztensor", "| key | value |", "## Poise's own metadata")) {
    for (const std::string& key : codes(row.at(0))) listed.insert(key);
  }
  EXPECT_EQ(listed, expected);
}

TEST(ZtensorPage, KindsOfVocabularies) {
  std::set<std::string> named;
  for (const Row& row : table("ztensor", "| key | value |", "## Poise's own metadata")) {
    if (code(row.at(0)) != "kind") continue;
    for (const std::string& kind : codes(row.at(1))) {
      EXPECT_NE(find_kind_row(kind), nullptr) << kind;
      named.insert(kind);
    }
  }
  for (const auto kind : {VocabularyKind::sentencepiece_bpe, VocabularyKind::sentencepiece_unigram,
                          VocabularyKind::byte_pair, VocabularyKind::pipeline})
    EXPECT_TRUE(named.contains(std::string(get_kind_row(kind).name)));
}

TEST(ZtensorPage, TokenTypes) {
  const Table rows = table("ztensor", "| token type | number |");
  EXPECT_EQ(rows.size(), token_types().size());
  for (const Row& row : rows) EXPECT_EQ(static_cast<int>(token_types().at(row.at(0))), number(row.at(1))) << row.at(0);
}

}  // namespace
}  // namespace poise::page
