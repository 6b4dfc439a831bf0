// The tables of docs/formats/gguf.md compared with those of the code, and with keys of files that Poise writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include <poise/format.hpp>

#include "codec/block_type.hpp"
#include "codec/blocks/codebooks.hpp"
#include "codec/blocks/grids.hpp"
#include "formats/gguf/architectures.hpp"
#include "formats/gguf/gguf_file.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/hyperparameters.hpp"
#include "formats/gguf/key_values.hpp"
#include "formats/gguf/types.hpp"
#include "formats/registry.hpp"
#include "pack/digest.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/model_files.hpp"
#include "support/page_tables.hpp"
#include "tokenizer/gguf/texts.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/tokens/sampling_keys.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::page {
namespace {

using testing::UnorderedElementsAreArray;

template <typename Value>
std::vector<std::byte> stored(const Value& value, const gguf::EntryType& type) {
  gguf::KeyValues entry;
  entry.add_value("k", value, type);
  return {entry.bytes().begin() + 8 + 1 + 4, entry.bytes().end()};  // after the key and its type
}

TEST(GgufPage, ValueTypes) {
  std::map<std::string, std::int64_t> rows;
  for (const Row& row : table("gguf", "| value type | number |")) {
    const std::string name = row.at(0).starts_with("array") ? "array" : code(row.at(0));
    rows[name] = number(row.at(1));
    const auto type = gguf::parse_entry_type(name);
    if (!type || name == "text") continue;
    const Value value = name.starts_with('f') ? Value(1.0) : name == "bool" ? Value(true) : Value(1);
    EXPECT_EQ(stored(value, *type).size(), count(row.at(2))) << name;
  }
  const auto last = static_cast<std::int64_t>(gguf::ValueType::f64);
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(last) + 1);
  for (const auto& [name, number] : rows) {
    const auto type = static_cast<gguf::ValueType>(number);
    EXPECT_EQ(name, type == gguf::ValueType::array ? "array" : to_string(gguf::EntryType{type})) << number;
  }
}

TEST(GgufPage, Limits) {
  expect_limits(table("gguf", "| limit | value |"), {{"version", gguf::kLastVersion},
                                                     {"alignment without `general.alignment`", gguf::kUsualAlignment},
                                                     {"largest alignment", gguf::kMaxAlignment},
                                                     {"smallest alignment that Poise writes", gguf::kLeastAlignment},
                                                     {"longest key", gguf::kMaxKeyBytes},
                                                     {"longest name of a tensor, read", gguf::kMaxNameBytes},
                                                     {"longest name of a tensor, written", gguf::kMaxWrittenName},
                                                     {"dimensions of a tensor", gguf::kMaxDimensions},
                                                     {"levels of arrays in arrays", gguf::kMaxNesting},
                                                     {"files of a split model", gguf::kMaxSplits}});
}

TEST(GgufPage, PlainAndRemovedTypes) {
  const Table plain = table("gguf", "| plain type | number |");
  EXPECT_EQ(plain.size(), gguf::kSpellings.size());
  for (const Row& row : plain) {
    const auto dtype = dtype_from_name(code(row.at(0)));
    ASSERT_TRUE(dtype) << row.at(0);
    EXPECT_EQ(find_spelling(gguf::kSpellings, *dtype), count(row.at(1))) << row.at(0);
    EXPECT_EQ(info(*dtype).bits, 8 * count(row.at(2))) << row.at(0);
  }
  std::map<std::string, std::uint64_t> removed;
  for (const Row& row : table("gguf", "| removed type | number |")) removed[code(row.at(0))] = count(row.at(1));
  EXPECT_EQ(removed.size(), gguf::kRemovedTypes.size());
  for (const gguf::RemovedType& type : gguf::kRemovedTypes) EXPECT_EQ(removed[std::string(type.name)], type.number);
}

TEST(GgufPage, BlockTypes) {
  const Table rows = table("gguf", "| type | number | elements | bytes |");
  EXPECT_EQ(rows.size(), list_block_types().size());
  for (const Row& row : rows) {
    const BlockType* const type = find_named_block_type(code(row.at(0)));
    ASSERT_NE(type, nullptr) << row.at(0);
    SCOPED_TRACE(std::string(type->name));
    EXPECT_EQ(type->number, count(row.at(1)));
    EXPECT_EQ(type->elements, count(row.at(2)));
    EXPECT_EQ(type->bytes, count(row.at(3)));
    const std::string& swapped = row.at(5);
    EXPECT_EQ(type->swapped.has_value(), swapped != "undefined");
    if (type->swapped) {
      const std::vector<std::int64_t> offsets(type->swapped->begin(), type->swapped->end());
      EXPECT_EQ(numbers(swapped == "none" ? "" : swapped), offsets);
    }
    const bool is_written = type->encode != nullptr;
    const std::string fallback = type->fallback.empty() ? is_written ? "f16" : "" : fmt::format("`{}`", type->fallback);
    EXPECT_EQ(row.at(6), fallback);
    EXPECT_EQ(row.at(7), is_written ? "yes" : "no");
  }
}

// Computes a formula of the page, such as "scale * (2 s + 1) * (coordinate + d)", with values of its names.
class Formula {
 public:
  Formula(std::string_view text, const std::map<std::string, double>& values) : rest_(text), values_(values) {}

  double value() {
    const double result = sum();
    EXPECT_TRUE(trimmed(rest_).empty()) << "not understood: " << rest_;
    return result;
  }

 private:
  bool skip(char c) {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  double sum() {
    double result = product();
    for (;;) {
      if (skip('+')) {
        result += product();
      } else if (skip('-')) {
        result -= product();
      } else {
        return result;
      }
    }
  }
  double product() {
    double result = factor();
    for (;;) {
      if (skip('*')) {
        result *= factor();
      } else if (skip('/')) {
        result /= factor();
      } else {
        return result;
      }
    }
  }
  double factor() {
    if (skip('(')) {
      const double result = sum();
      EXPECT_TRUE(skip(')'));
      return result;
    }
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    if (digits > 0) {
      const double result = static_cast<double>(number(rest_.substr(0, digits)));
      rest_.remove_prefix(digits);
      if (skip('^')) return std::pow(result, factor());
      return rest_.starts_with("s ") ? result * factor() : result;  // "2 s", whose space skip() has removed
    }
    const std::size_t end = std::min(rest_.find_first_of(" +-*/()"), rest_.size());
    const std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    EXPECT_TRUE(values_.contains(name)) << name;
    return values_.contains(name) ? values_.at(name) : 0;
  }

  std::string_view rest_;
  const std::map<std::string, double>& values_;
};

// Holds the bytes of a block's scales, which are 1, and of its min, which is 2; and the values of code, s, m,
// coordinate and so on, where all other bytes are 0x00 or 0xff.
struct FormulaCase {
  std::string_view type;
  std::vector<std::pair<std::size_t, std::string>> fixed;
  std::map<std::string, double> zeros;
  std::map<std::string, double> ones;
};

TEST(GgufPage, FormulasOfBlocks) {
  const std::string one("\x00\x3c", 2);
  const std::string two("\x00\x40", 2);
  const auto first = [](const auto& points, std::size_t i) {
    return static_cast<double>(std::bit_cast<std::int8_t>(static_cast<std::uint8_t>(points[i])));
  };
  const auto book = [](const auto& numbers, std::size_t i) { return static_cast<double>(numbers[i]); };
  const std::vector<FormulaCase> cases = {
      {"q4_0", {{0, one}}, {{"code", 0}}, {{"code", 15}}},
      {"q4_1", {{0, one}, {2, two}}, {{"code", 0}}, {{"code", 15}}},
      {"q5_0", {{0, one}}, {{"code", 0}}, {{"code", 31}}},
      {"q5_1", {{0, one}, {2, two}}, {{"code", 0}}, {{"code", 31}}},
      {"q8_0", {{0, one}}, {{"code", 0}}, {{"code", -1}}},
      {"q2_k", {{80, one}, {82, two}}, {{"code", 0}, {"s", 0}, {"m", 0}}, {{"code", 3}, {"s", 15}, {"m", 15}}},
      {"q3_k", {{108, one}}, {{"code", 0}, {"s", 0}}, {{"code", 7}, {"s", 63}}},
      {"q4_k", {{0, one}, {2, two}}, {{"code", 0}, {"s", 0}, {"m", 0}}, {{"code", 15}, {"s", 63}, {"m", 63}}},
      {"q5_k", {{0, one}, {2, two}}, {{"code", 0}, {"s", 0}, {"m", 0}}, {{"code", 31}, {"s", 63}, {"m", 63}}},
      {"q6_k", {{208, one}}, {{"code", 0}, {"s", 0}}, {{"code", 63}, {"s", -1}}},
      {"q8_k", {{0, std::string("\0\0\x80\x3f", 4)}}, {{"code", 0}}, {{"code", -1}}},
      {"iq2_xxs",
       {{0, one}},
       {{"s", 0}, {"coordinate", first(kGridIq2Xxs, 0)}},
       {{"s", 15}, {"coordinate", -first(kGridIq2Xxs, 255)}}},
      {"iq2_xs",
       {{0, one}},
       {{"s", 0}, {"coordinate", first(kGridIq2Xs, 0)}},
       {{"s", 15}, {"coordinate", -first(kGridIq2Xs, 511)}}},
      {"iq3_xxs",
       {{0, one}},
       {{"s", 0}, {"coordinate", first(kGridIq3Xxs, 0)}},
       {{"s", 15}, {"coordinate", -first(kGridIq3Xxs, 255)}}},
      {"iq1_s",
       {{0, one}},
       {{"s", 0}, {"d", 0.125}, {"coordinate", first(kGridIq1, 0)}},
       {{"s", 7}, {"d", -0.125}, {"coordinate", first(kGridIq1, 2047)}}},
      {"iq4_nl", {{0, one}}, {{"book[code]", book(kIq4Numbers, 0)}}, {{"book[code]", book(kIq4Numbers, 15)}}},
      {"iq3_s",
       {{0, one}},
       {{"s", 0}, {"coordinate", first(kGridIq3S, 0)}},
       {{"s", 15}, {"coordinate", -first(kGridIq3S, 511)}}},
      {"iq2_s",
       {{0, one}},
       {{"s", 0}, {"coordinate", first(kGridIq2S, 0)}},
       {{"s", 15}, {"coordinate", -first(kGridIq2S, 1023)}}},
      {"iq4_xs",
       {{0, one}},
       {{"s", 0}, {"book[code]", book(kIq4Numbers, 0)}},
       {{"s", 63}, {"book[code]", book(kIq4Numbers, 15)}}},
      {"tq1_0", {{52, one}}, {{"digit", 0}}, {{"digit", 2}}},
      {"tq2_0", {{64, one}}, {{"code", 0}}, {{"code", 3}}},
      {"mxfp4", {{0, "\x81"}}, {{"e", 129}, {"book[code]", 0}}, {{"e", 129}, {"book[code]", book(kFp4Numbers, 15)}}},
      {"nvfp4",
       {{0, "\x38\x38\x38\x38"}},
       {{"book[code]", book(kFp4Numbers, 0)}},
       {{"book[code]", book(kFp4Numbers, 15)}}},
      {"q2_0", {{0, one}}, {{"code", 0}}, {{"code", 3}}},
  };
  std::string formula;
  std::set<std::string_view> checked;
  for (const Row& row : table("gguf", "| type | number | elements | bytes |")) {
    if (row.at(4) != "the same") formula = row.at(4).substr(0, row.at(4).find_first_of(",;"));
    const auto found = std::ranges::find(cases, code(row.at(0)), &FormulaCase::type);
    if (found == cases.end()) continue;
    checked.insert(found->type);
    const BlockType& type = *find_named_block_type(found->type);
    for (const bool has_ones : {false, true}) {
      std::string block(type.bytes, has_ones ? '\xff' : '\0');
      for (const auto& [at, bytes] : found->fixed) block.replace(at, bytes.size(), bytes);
      std::map<std::string, double> values = has_ones ? found->ones : found->zeros;
      values.insert({{"scale", 1}, {"min", 2}});
      std::vector<float> numbers(type.elements);
      type.decode(support::to_bytes(block).data(), 1, numbers.data());
      EXPECT_EQ(numbers.front(), Formula(formula, values).value()) << type.name << ": " << formula;
    }
  }
  EXPECT_EQ(checked.size(), cases.size());
}

struct Grid {
  std::string_view table;
  std::vector<std::byte> bytes;
  std::size_t point_bytes;
};
template <typename Points>
Grid grid(std::string_view table, const Points& points) {
  std::string bytes;
  for (const auto point : points) bytes += support::le(point, sizeof point);
  return {table, support::to_bytes(bytes), sizeof points[0]};
}

TEST(GgufPage, Grids) {
  const std::vector<Grid> grids = {grid("iq2xxs_grid", kGridIq2Xxs), grid("iq2xs_grid", kGridIq2Xs),
                                   grid("iq2s_grid", kGridIq2S),     grid("iq3xxs_grid", kGridIq3Xxs),
                                   grid("iq3s_grid", kGridIq3S),     grid("iq1s_grid", kGridIq1)};
  const Table rows = table("gguf", "| types | table in ggml-common.h |");
  ASSERT_EQ(rows.size(), grids.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    EXPECT_EQ(code(row.at(1)), grids[i].table);
    EXPECT_EQ(count(row.at(2)) * grids[i].point_bytes, grids[i].bytes.size()) << grids[i].table;
    EXPECT_EQ(count(row.at(3)), grids[i].point_bytes) << grids[i].table;
    std::set<std::int64_t> coordinates;
    for (const std::byte byte : grids[i].bytes) coordinates.insert(std::bit_cast<std::int8_t>(byte));
    const auto listed = numbers(row.at(4));
    EXPECT_EQ(std::set(listed.begin(), listed.end()), coordinates) << grids[i].table;
    EXPECT_EQ(code(row.at(5)), compute_sha256(grids[i].bytes)) << grids[i].table;
  }
}

TEST(GgufPage, Books) {
  const Table rows = table("gguf", "| types | book |");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(numbers(rows[0].at(1)), std::vector<std::int64_t>(kIq4Numbers.begin(), kIq4Numbers.end()));
  EXPECT_EQ(numbers(rows[1].at(1)), std::vector<std::int64_t>(kFp4Numbers.begin(), kFp4Numbers.end()));
}

TEST(GgufPage, FileTypes) {
  const Table rows = table("gguf", "| number | name | type of most tensors |");
  EXPECT_EQ(rows.size(), gguf::kFileTypes.size());
  for (const Row& row : rows) {
    const auto type = std::ranges::find(gguf::kFileTypes, count(row.at(0)), &gguf::FileType::number);
    ASSERT_NE(type, gguf::kFileTypes.end()) << row.at(0);
    EXPECT_EQ(code(row.at(1)), type->name) << row.at(0);
    const std::string of_most = code(row.at(2));
    const BlockType* const blocks = find_named_block_type(of_most);
    const auto plain = dtype_from_name(of_most);
    ASSERT_TRUE(blocks != nullptr || plain) << of_most;
    EXPECT_EQ(blocks != nullptr ? blocks->number : find_spelling(gguf::kSpellings, *plain), type->type) << row.at(0);
  }
}

TEST(GgufPage, TokenTypes) {
  const std::map<std::string, TokenType> types = {
      {"normal", TokenType::normal},   {"unknown", TokenType::unknown},
      {"control", TokenType::control}, {"user-defined", TokenType::user_defined},
      {"unused", TokenType::unused},   {"byte", TokenType::byte}};
  std::size_t listed = 0;
  for (const Row& row : table("gguf", "| number in `token_type` |")) {
    if (row.at(1).empty()) continue;  // 0: undefined
    ++listed;
    EXPECT_EQ(find_token_type(count(row.at(0))), types.at(row.at(1)));
    EXPECT_EQ(find_token_type_number(types.at(row.at(1))), number(row.at(0)));
  }
  EXPECT_EQ(listed, types.size());
  EXPECT_EQ(find_token_type(0), std::nullopt);
  EXPECT_EQ(find_token_type(listed + 1), std::nullopt);
}

// The types of keys by their names. A cell may list several names; ".xy" replaces the end of the name before it.
using KeyTypes = std::map<std::string, std::string>;
KeyTypes key_types(const Table& rows) {
  KeyTypes types;
  for (const Row& row : rows) {
    std::string before;
    for (std::string key : codes(row.at(0))) {
      if (key.starts_with('.')) key = before.substr(0, before.rfind('.')) + key;
      before = key;
      EXPECT_TRUE(types.emplace(key, code(row.at(1))).second) << key << " has two rows";
    }
  }
  return types;
}

KeyTypes tokenizer_keys() { return key_types(table("gguf", "| key | type | required | meaning")); }
KeyTypes architecture_keys() { return key_types(table("gguf", "| key | type | required | in config.json")); }

// Returns the types of the keys in a file.
KeyTypes written_keys(const std::vector<std::byte>& file) {
  const SourcePtr source = Source::from_memory(file, "test.gguf");
  gguf::HeaderReader header(*source);
  KeyTypes types;
  header.read_metadata([&](std::string_view key, gguf::MetadataValue& value) {
    types.emplace(key, to_string(gguf::EntryType{value.type(), value.item_type()}));
  });
  return types;
}

// Keys that a file of Poise has are on the page, with the type that they have there.
void expect_on_page(const KeyTypes& written, std::string_view architecture) {
  KeyTypes page;
  for (const auto& [header, heading] : {std::pair("| key | type | meaning |", "### General keys"),
                                        std::pair("| key | type | in generation_config.json |", "### General keys"),
                                        std::pair("| key | type | value |", "### Keys of Poise"),
                                        std::pair("| key | type | value |", "### Split models")})
    page.merge(key_types(table("gguf", header, heading)));
  page.merge(tokenizer_keys());
  for (const auto& [key, type] : architecture_keys()) page.emplace(fmt::format("{}.{}", architecture, key), type);
  for (const auto& [key, type] : written) {
    if (key.find('.') == std::string::npos) continue;  // an attribute of the model
    ASSERT_TRUE(page.contains(key)) << key;
    EXPECT_EQ(page[key], type) << key;
  }
}

TEST(GgufPage, KeysOfAFile) {
  const Model model = open(source_directory() / "examples/nano-mistral");
  const KeyTypes written = written_keys(support::written(model, kGguf));
  expect_on_page(written, "llama");
  for (const Row& row : table("gguf", "| key | type | required | in config.json")) {
    const bool is_required = std::ranges::find(gguf::kRequired, code(row.at(0))) != gguf::kRequired.end();
    EXPECT_EQ(row.at(2), is_required ? "yes" : "no") << row.at(0);
    if (is_required) {
      EXPECT_TRUE(written.contains("llama." + code(row.at(0)))) << row.at(0);
    }
  }
  const auto parts = support::written_files(model, kGguf, {.shard_size = 1 << 20});
  ASSERT_GT(parts.size(), 1U);
  const KeyTypes split = key_types(table("gguf", "| key | type | value |", "### Split models"));
  for (const auto& [name, bytes] : parts) {
    const KeyTypes keys = written_keys(bytes);
    for (const auto& [key, type] : split) {
      ASSERT_TRUE(keys.contains(key)) << name << " " << key;
      EXPECT_EQ(keys.at(key), type) << key;
    }
  }
}

GgufTokenizer tokenizer_of(std::string model) {
  GgufTokenizer gguf;
  gguf.model = std::move(model);
  gguf.tokens = {"<unk>", "<s>", "</s>", "a", "b"};
  gguf.token_type = {2, 3, 3, 1, 1};
  gguf.bos_token_id = 1;
  gguf.eos_token_id = 2;
  gguf.unknown_token_id = 0;
  gguf.padding_token_id = 2;
  gguf.seperator_token_id = 2;
  return gguf;
}

TEST(GgufPage, KeysOfVocabularies) {
  const KeyTypes page = tokenizer_keys();
  std::vector<std::string> keys(kGgufTokenizerKeys.begin(), kGgufTokenizerKeys.end());
  std::erase(keys, "poise.longest_sequence");  // with Poise's keys
  for (const std::string_view key : {kGgufChatTemplate, kGgufChatTemplates}) keys.emplace_back(key);
  keys.push_back(fmt::format("{}.NAME", kGgufChatTemplate));
  std::vector<std::string> listed;
  for (const auto& [key, type] : page) listed.push_back(key);
  EXPECT_THAT(listed, UnorderedElementsAreArray(keys));
  // Types of keys that Poise writes.
  std::set<std::string> seen;
  for (const std::string name : {"llama", "gpt2", "bert", "t5"}) {
    SCOPED_TRACE(name);
    GgufTokenizer gguf = tokenizer_of(name);
    if (name == "gpt2") gguf.merges = {"a b"};
    if (name == "gpt2") gguf.tokens.back() = "ab";
    if (name == "llama" || name == "t5") gguf.scores = {0, 0, 0, -1, -2};
    if (name == "bert") gguf.lowercase = false;
    if (name == "bert") gguf.strip_accents = true;
    if (name == "bert") gguf.cls_token_id = 1;
    if (name == "t5") gguf.remove_extra_whitespaces = true;
    gguf.chat_template =
        Value::Array{Attributes{{"name", "default"}, {"template", "x"}}, Attributes{{"name", "b"}, {"template", "y"}}};
    Model model;
    model.vocabulary = make_vocabulary(std::move(gguf));
    for (const auto& [key, type] : written_keys(support::written(model, kGguf))) {
      if (!key.starts_with("tokenizer.")) continue;
      const std::string named = key == "tokenizer.chat_template.b" ? "tokenizer.chat_template.NAME" : key;
      ASSERT_TRUE(page.contains(named)) << key;
      EXPECT_EQ(page.at(named), type) << key;
      seen.insert(named);
    }
  }
  // These depend on bytes of SentencePiece's rules, and on a key that Poise reads only.
  std::set<std::string> expected(listed.begin(), listed.end());
  expected.erase("tokenizer.ggml.precompiled_charsmap");
  expected.erase("tokenizer.ggml.cls_token_id");
  EXPECT_EQ(seen, expected);
  Model rules;
  rules.attributes.set("tokenizer.ggml.precompiled_charsmap", Value::Array{Value(1)});
  EXPECT_EQ(written_keys(support::written(rules, kGguf)).at("tokenizer.ggml.precompiled_charsmap"),
            page.at("tokenizer.ggml.precompiled_charsmap"));
}

TEST(GgufPage, DefaultIds) {
  std::map<std::string, SpecialIds> rows;
  for (const Row& row : table("gguf", "| `tokenizer.ggml.model` | `bos_token_id` |")) {
    const auto id = [&](std::size_t cell) {
      return row.at(cell).empty() ? -1 : static_cast<std::int32_t>(number(row.at(cell)));
    };
    rows[code(row.at(0))] = {.bos_id = id(1), .eos_id = id(2), .unk_id = id(3)};
  }
  for (const std::string model : {"llama", "gpt2", "bert", "t5", "gemma4", ""}) {
    const SpecialIds ids = find_default_gguf_ids(model, "default");
    EXPECT_EQ(rows[model].bos_id, ids.bos_id) << model;
    EXPECT_EQ(rows[model].eos_id, ids.eos_id) << model;
    EXPECT_EQ(rows[model].unk_id, ids.unk_id) << model;
  }
  EXPECT_EQ(rows.size(), 6U) << "a row of another vocabulary";
}

// Returns the default of a key of the vocabulary: what its cell ends with.
std::string default_of(std::string_view key) {
  for (const Row& row : table("gguf", "| key | type | required | meaning")) {
    if (code(row.at(0)) == fmt::format("tokenizer.ggml.{}", key)) return row.at(3);
  }
  return {};
}
bool flag(std::string_view key) {
  const std::string text = default_of(key);
  EXPECT_TRUE(text.ends_with("true") || text.ends_with("false")) << key;
  return text.ends_with("true");
}

// The vocabularies lack the keys that have a default.
TEST(GgufPage, DefaultsOfVocabularies) {
  std::vector<std::string> texts(110, "x");
  for (std::size_t id = 0; id < texts.size(); ++id) texts[id] += std::to_string(id);
  const auto read = [&](std::string model) {
    GgufTokenizer gguf;
    gguf.model = std::move(model);
    gguf.tokens = texts;
    return make_vocabulary(std::move(gguf));
  };
  const SpecialAround around = find_special_around(read("bert"));
  EXPECT_THAT(around.before, testing::ElementsAre(numbers(default_of("cls_token_id")).back()));
  EXPECT_THAT(around.after, testing::ElementsAre(numbers(default_of("seperator_token_id")).back()));
  const Vocabulary t5 = read("t5");
  EXPECT_FALSE(t5.add_dummy_prefix);
  EXPECT_NE(default_of("add_space_prefix").find("`t5` false"), std::string::npos);
  EXPECT_EQ(t5.remove_extra_whitespaces, flag("remove_extra_whitespaces"));
  EXPECT_EQ(find_special_around(t5).after.size(), 1U);
  EXPECT_NE(default_of("add_eos_token").find("`t5` true"), std::string::npos);
  EXPECT_EQ(find_special_around(t5).before.size(), 0U);
  EXPECT_NE(default_of("add_bos_token").find("`t5` false"), std::string::npos);
  std::vector<std::string> tokens;
  for (const std::string& text : texts) tokens.push_back(gguf_test::text(text));
  const Model llama = support::read(
      support::to_bytes(gguf_test::file_of({gguf_test::text_entry("tokenizer.ggml.model", "llama"),
                                            gguf_test::array_entry("tokenizer.ggml.tokens", gguf_test::kText, tokens)},
                                           {})
                            .bytes()),
      "test.gguf");
  EXPECT_TRUE(llama.vocabulary->add_dummy_prefix);
  EXPECT_NE(default_of("add_space_prefix").find("`llama` true"), std::string::npos);
  EXPECT_EQ(llama.vocabulary->remove_extra_whitespaces, flag("remove_extra_whitespaces"));
  EXPECT_EQ(find_special_around(*llama.vocabulary).before.size(), 1U);
  EXPECT_NE(default_of("add_bos_token").find("`llama` true"), std::string::npos);
  EXPECT_EQ(find_special_around(*llama.vocabulary).after.size(), 0U);
  EXPECT_NE(default_of("add_eos_token").find("false, `t5` true"), std::string::npos);
}

TEST(GgufPage, SamplingKeys) {
  const Table rows = table("gguf", "| key | type | in generation_config.json |");
  ASSERT_EQ(rows.size(), kSamplingKeys.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SamplingKey& key = kSamplingKeys.at(i);
    EXPECT_EQ(code(rows[i].at(0)), fmt::format("{}{}", kSamplingPrefix, key.gguf));
    EXPECT_EQ(code(rows[i].at(2)), key.config);
    const bool is_text = key.kind == SamplingKey::Kind::text;
    EXPECT_EQ(code(rows[i].at(1)), is_text                                  ? "text"
                                   : key.kind == SamplingKey::Kind::integer ? "i32"
                                                                            : "f32")
        << key.gguf;
  }
}

std::vector<const gguf::Architecture*> architectures() {
  std::vector<const gguf::Architecture*> all = {gguf::find_named_architecture("mistral3", false)};
  for (const std::string_view type : gguf::list_model_types()) all.push_back(gguf::find_family_architecture(type));
  return all;
}

TEST(GgufPage, KeysOfArchitectures) {
  std::map<std::string, Row> page;
  for (const Row& row : table("gguf", "| key | type | required | in config.json")) page[code(row.at(0))] = row;
  std::set<std::string> known = {
      std::string(gguf::kCausal),    std::string(gguf::kPattern),  std::string(gguf::kAttentionFactor),
      std::string(gguf::kOldFactor), std::string(gguf::kRotating), std::string(gguf::kYarnLog),
      "attention.value_length",      "rope.scaling.type"};
  const auto expect_row = [&](const gguf::KeyRow& row) {
    const std::string key(row.gguf);
    known.insert(key);
    ASSERT_TRUE(page.contains(key)) << key;
    EXPECT_EQ(code(page[key].at(1)), row.kind == gguf::KeyRow::Kind::integer ? "u32" : "f32") << key;
    EXPECT_THAT(codes(page[key].at(3)), testing::Contains(std::string(row.config))) << key;
  };
  for (const gguf::Architecture* architecture : architectures()) {
    for (const gguf::KeyRow& row : gguf::list_key_rows(*architecture)) expect_row(row);
  }
  for (const gguf::KeyRow& row : gguf::kScalingKeys) expect_row(row);
  for (const auto& [key, row] : page) {
    EXPECT_TRUE(known.contains(key)) << key;
    if (const auto required = gguf::find_key_type("llama." + key, "llama")) {
      EXPECT_EQ(code(row.at(1)), to_string(*required)) << key;
    }
  }
}

// Reads a file with the keys that the page requires, and with more of them.
Config config_of(const std::string& architecture, const std::string& without, std::vector<gguf_test::Entry> more) {
  std::vector<gguf_test::Entry> entries = {gguf_test::text_entry("general.architecture", architecture)};
  const std::map<std::string, std::uint32_t> values = {{"context_length", 16},      {"embedding_length", 64},
                                                       {"block_count", 1},          {"feed_forward_length", 96},
                                                       {"attention.head_count", 2}, {"vocab_size", 8}};
  for (const auto& [key, value] : values) {
    if (key != without) entries.push_back(gguf_test::u32_entry(architecture + "." + key, value));
  }
  std::ranges::move(more, std::back_inserter(entries));
  return support::read(support::to_bytes(gguf_test::file_of(entries, {}).bytes()), "test.gguf").config.value();
}

TEST(GgufPage, Defaults) {
  std::set<std::string> listed;
  for (const Row& row : table("gguf", "| architecture | `model_type` | `context_length` |")) {
    const std::string architecture = code(row.at(0));
    const std::string type = code(row.at(1));
    SCOPED_TRACE(architecture + " " + type);
    listed.insert(type);
    ASSERT_NE(gguf::find_family_architecture(type), nullptr);
    std::vector<gguf_test::Entry> more;
    if (type == "mistral" && architecture == "llama")
      more.push_back(gguf_test::text_entry("poise.config", R"({"model_type":"mistral"})"));
    if (type == "mixtral") more.push_back(gguf_test::u32_entry("llama.expert_count", 8));
    const Config config = config_of(architecture, "context_length", more);
    EXPECT_EQ(config.max_position_embeddings, number(row.at(2)));
    const auto expected = [&](std::size_t cell, std::string_view word, std::int64_t value) {
      return row.at(cell) == word || row.at(cell).empty() ? value : number(row.at(cell));
    };
    EXPECT_EQ(config.num_key_value_heads, expected(3, "heads", 2));
    EXPECT_EQ(config.head_dim, expected(4, "quotient", 32));
    EXPECT_EQ(config.sliding_window, expected(5, "none", 0));
    if (!row.at(6).empty()) {
      EXPECT_EQ(config.rope_theta, real(row.at(6)));
    }
    EXPECT_EQ(config.rms_norm_eps, real(row.at(7)));
    EXPECT_EQ(config.vocab_size, 8);
  }
  const auto types = gguf::list_model_types();
  EXPECT_EQ(listed, std::set<std::string>(types.begin(), types.end()));
}

}  // namespace
}  // namespace poise::page
