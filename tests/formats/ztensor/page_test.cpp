// The tables of docs/formats/ztensor.md compared with those of the code.
#include <gtest/gtest.h>

#include <set>

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
    const auto dtype = ztensor::dtype_from_storage(code(row.at(0)), code(row.at(1)));
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
    const auto dtype = dtype_spelled(ztensor::kSpellings1, std::string_view(name));
    ASSERT_TRUE(dtype);
    EXPECT_EQ(info(*dtype).bits, 8 * count(row.at(1)));
    EXPECT_EQ(ztensor::dtype_from_storage(code(row.at(2)), code(row.at(3))), dtype);
    EXPECT_EQ(code(row.at(4)), spelling_in(ztensor::kSpellings0, *dtype).value_or(""));
    older += row.at(4).empty() ? 0U : 1U;
  }
  EXPECT_EQ(older, ztensor::kSpellings0.size());
}

TEST(ZtensorPage, AttributesOfGroups) {
  std::set<std::string> listed;
  for (const Row& row : table("ztensor", "| attribute | type | value |")) {
    const std::string name = code(row.at(0));
    EXPECT_TRUE(spells_group_scheme(name)) << name;
    listed.insert(name);
  }
  // The page requires all of them, and Poise reads a scheme that has them and no others.
  const Attributes scheme = byte_code_attributes(1, 0, 0);
  std::set<std::string> read;
  for (const auto& [name, value] : scheme) read.insert(name);
  EXPECT_EQ(listed, read);
}

TEST(ZtensorPage, KindsOfVocabularies) {
  std::set<std::string> named;
  for (const Row& row : table("ztensor", "| key | value |", "## Poise's own metadata")) {
    if (code(row.at(0)) != "kind") continue;
    for (const std::string& kind : codes(row.at(1))) {
      EXPECT_NE(find_token_kind(kind), nullptr) << kind;
      named.insert(kind);
    }
  }
  for (const auto kind : {VocabularyKind::sentencepiece_bpe, VocabularyKind::sentencepiece_unigram,
                          VocabularyKind::byte_pair, VocabularyKind::pipeline})
    EXPECT_TRUE(named.contains(std::string(token_kind(kind).name)));
}

TEST(ZtensorPage, TokenTypes) {
  const Table rows = table("ztensor", "| token type | number |");
  EXPECT_EQ(rows.size(), token_types().size());
  for (const Row& row : rows) EXPECT_EQ(static_cast<int>(token_types().at(row.at(0))), number(row.at(1))) << row.at(0);
}

}  // namespace
}  // namespace poise::page
