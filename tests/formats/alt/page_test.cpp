// The tables of docs/formats/alt.md compared with those of the code. Complete files that were laid out by hand are read
// field by field as the tables describe them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <fmt/format.h>

#include "family/families.hpp"
#include "formats/alt/layout.hpp"
#include "formats/alt/sections.hpp"
#include "model/card.hpp"
#include "support/annotated_hex.hpp"
#include "support/bytes.hpp"
#include "support/model_files.hpp"
#include "support/page_tables.hpp"

namespace poise::page {
namespace {

TEST(AltPage, TokenTypes) {
  const Table rows = table("alt", "| token type | number |");
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(alt::kMostTypeCode) + 1);
  std::set<std::string> names;
  for (const Row& row : rows) {
    names.insert(row.at(0));
    const TokenType type = token_types().at(row.at(0));
    EXPECT_EQ(alt::encode_token_type(alt::TypeNumbering::canonical, type), number(row.at(1))) << row.at(0);
    EXPECT_EQ(alt::encode_token_type(alt::TypeNumbering::alt_c, type), number(row.at(2))) << row.at(0);
  }
  EXPECT_EQ(names.size(), token_types().size());
}

TEST(AltPage, Sections) {
  const Table rows = table("alt", "| section | marker |");
  ASSERT_EQ(rows.size(), alt::kSections.size() + 2);
  for (std::size_t i = 0; i < alt::kSections.size(); ++i) {
    EXPECT_EQ(rows[i + 1].at(0), alt::kSections.at(i).name);
    EXPECT_EQ(code(rows[i + 1].at(1)), fmt::format("0x{:X}", alt::kSections.at(i).marker));
  }
  EXPECT_EQ(code(rows.back().at(1)), fmt::format("0x{:08X}", alt::kEndMarker));
}

TEST(AltPage, Hints) {
  const Table rows = table("alt", "| `tensor_name` | `component_type` |");
  std::vector<std::string> order;
  for (const Row& row : rows) {
    std::string name = code(row.at(0));
    const bool is_canonical = !name.empty() && !name.ends_with('.');
    if (name.empty()) name = "x.weight";
    if (name.ends_with('.')) name += "x.weight";
    if (const auto n = name.find(".N."); n != std::string::npos) name.replace(n, 3, ".7.");
    if (is_canonical) order.push_back(name);
    const std::string& block = row.at(2);
    const alt::Hints hints = alt::make_hints(alt::find_alt_role(name), alt::kFirstOtherBlock);
    EXPECT_EQ(hints.component_type, number(row.at(1))) << name;
    EXPECT_EQ(hints.block_index, block == "N" ? 7 : number(block)) << name;
    EXPECT_EQ(hints.layer_type, number(row.at(3))) << name;
    EXPECT_EQ(hints.projection_type, number(row.at(4))) << name;
    EXPECT_EQ(alt::find_alt_role(name).is_known(), is_canonical) << name;
  }
  EXPECT_EQ(rows.size(), order.size() + 2);  // other names, in layers and outside them
  Config config;
  config.hidden_size = config.intermediate_size = config.vocab_size = 8;
  config.num_attention_heads = config.num_key_value_heads = 1;
  config.head_dim = 8;
  config.num_hidden_layers = 8;
  std::set<std::string> known;
  for (const ExpectedTensor& tensor : find_family("mistral")->tensors.list_all(config)) {
    const alt::AltRole role = alt::find_alt_role(tensor.name);
    if (role.is_known() && (alt::is_outside_layers(role) || role.block == 7)) known.insert(tensor.name);
  }
  EXPECT_EQ(std::set(order.begin(), order.end()), known);
  // The order of the table is that of tensors in a file.
  Model model;
  for (auto name = order.rbegin(); name != order.rend(); ++name) {
    Tensor tensor;
    tensor.name = *name;
    model.add(std::move(tensor));
  }
  std::vector<std::string> sorted;
  for (const Tensor* tensor : alt::list_in_canonical_order(model)) sorted.emplace_back(tensor->name);
  EXPECT_EQ(sorted, order);
}

TEST(AltPage, DataTypes) {
  const std::map<std::string, DType> names = {{"float32", DType::f32},
                                              {"float16", DType::f16},
                                              {"qint8", DType::qint8},
                                              {"qint4", DType::qint4},
                                              {"bfloat16", DType::bf16}};
  const Table rows = table("alt", "| `data_type` | number |");
  EXPECT_EQ(rows.size(), alt::kCodes.size());
  for (const Row& row : rows) {
    const DType dtype = names.at(row.at(0));
    EXPECT_EQ(find_spelling(alt::kCodes, dtype), number(row.at(1))) << row.at(0);
    constexpr std::uint64_t kCount = 7;
    const std::string& bytes = row.at(2);
    const std::uint64_t expected = bytes == "(n + 1) / 2" ? (kCount + 1) / 2
                                   : bytes == "n"         ? kCount
                                                          : count(bytes) * kCount;
    EXPECT_EQ(packed_bytes(dtype, kCount), expected) << row.at(0);
  }
}

constexpr std::size_t kAlign = alt::kAlignment;

// Reads the marker and the size of a section, and returns the section's end.
std::size_t begin_section(FieldReader& reader, alt::Section section) {
  const std::size_t begin = reader.position();
  EXPECT_EQ(begin % kAlign, 0U);
  const Table rows = table("alt", "| part | type |");
  EXPECT_EQ(reader.field(rows.at(0).at(1)), fmt::format("{}", alt::get_section_info(section).marker));
  return begin + count(reader.field(rows.at(1).at(1)));
}

// `fields_end`: the offset of the padding in the file that was laid out by hand.
void end_section(FieldReader& reader, std::size_t end, std::size_t fields_end) {
  EXPECT_EQ(reader.position(), fields_end);
  reader.pad_to(kAlign);
  EXPECT_EQ(reader.position(), end);
}

void expect_config(const std::map<std::string, std::string>& fields, const Config& config) {
  const std::map<std::string, std::string> expected = {
      {"hidden_act", config.hidden_act},
      {"tie_word_embeddings", config.tie_word_embeddings ? "1" : "0"},
      {"hidden_size", fmt::format("{}", config.hidden_size)},
      {"intermediate_size", fmt::format("{}", config.intermediate_size)},
      {"max_position_embeddings", fmt::format("{}", config.max_position_embeddings)},
      {"context_length", fmt::format("{}", config.max_position_embeddings)},
      {"num_attention_heads", fmt::format("{}", config.num_attention_heads)},
      {"num_hidden_layers", fmt::format("{}", config.num_hidden_layers)},
      {"num_key_value_heads", fmt::format("{}", config.num_key_value_heads)},
      {"sliding_window", fmt::format("{}", config.sliding_window)},
      {"rope_theta", fmt::format("{}", config.rope_theta)},
      {"rms_norm_eps", fmt::format("{}", config.rms_norm_eps)},
      {"initializer_range", fmt::format("{}", config.initializer_range)},
      {"head_size", fmt::format("{}", config.head_dim)}};
  for (const auto& [name, value] : fields) {
    if (name == "model_type" || name == "data_type") continue;
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_EQ(value, expected.at(name)) << name;
  }
}

// Expects the data of a tensor. `rows`: the fields before it, with its shape in the middle.
void expect_tensor(FieldReader& reader, const Table& rows, const Model& model) {
  std::map<std::string, std::string> found;
  std::vector<std::uint64_t> shape;
  const Tensor* tensor = nullptr;
  for (const Row& row : rows) {
    const std::string name = code(row.at(0));
    if (name == "shape_dimensions") {
      for (std::int64_t i = 0; i < number(found.at("n_dims")); ++i) shape.push_back(count(reader.field("i32")));
    } else if (name == "tensor_name") {
      const std::string text = row.at(1) == "text" ? reader.field("text") : reader.take(count(found.at("name_length")));
      tensor = model.find(text);
      ASSERT_NE(tensor, nullptr) << text;
    } else if (name == "tensor_data") {
      ASSERT_NE(tensor, nullptr);
      const Blob& blob = *tensor->require("data").blob;
      std::vector<std::byte> data(static_cast<std::size_t>(blob.size()));
      blob.read(0, data);
      EXPECT_EQ(reader.take(data.size()), support::to_string(data)) << tensor->name;
    } else {
      found[name] = reader.field(row.at(1));
    }
  }
  EXPECT_EQ(Shape(shape.begin(), shape.end()), tensor->shape) << tensor->name;
}

TEST(AltPage, AFileOfVersion2IsReadByItsTables) {
  const auto file = support::read_annotated_hex("formats/alt/v2.hex");
  const Model model = support::read(file, "v2.alt");
  FieldReader reader(file);
  for (const Row& row : table("alt", "| offset | field | type | value |")) {
    EXPECT_EQ(reader.position(), count(row.at(0)));
    if (row.at(2).empty()) continue;  // padding
    const std::string value = reader.field(row.at(2));
    const std::string text = row.at(3).starts_with('`') ? code(row.at(3)).substr(2) : row.at(3);
    EXPECT_EQ(std::stoll(value), std::stoll(text, nullptr, row.at(3).starts_with('`') ? 16 : 10)) << row.at(1);
  }
  reader.pad_to(kAlign);

  std::size_t end = begin_section(reader, alt::Section::general);
  const auto general = reader.fields(table("alt", "| field | type |", "### General"));
  const Attributes card = card_to_attributes(model.card);
  EXPECT_EQ(general.size(), card.size());
  for (const auto& [key, value] : card) EXPECT_EQ(Value(general.at(key)), value) << key;
  end_section(reader, end, 0xa6);

  end = begin_section(reader, alt::Section::parameters);
  const auto parameters = reader.fields(table("alt", "| field | type |", "### Parameters"));
  EXPECT_EQ(parameters.size(), 13U);
  expect_config(parameters, *model.config);
  end_section(reader, end, 0x105);

  end = begin_section(reader, alt::Section::tokenizer);
  const Vocabulary& vocabulary = *model.vocabulary;
  auto ids = reader.fields(table("alt", "| field | type |", "### Tokenizer"));
  EXPECT_EQ(ids.at("vocab_size"), fmt::format("{}", vocabulary.size()));
  EXPECT_EQ(ids.at("bos_id"), fmt::format("{}", vocabulary.bos_id));
  EXPECT_EQ(ids.at("eos_id"), fmt::format("{}", vocabulary.eos_id));
  EXPECT_EQ(ids.at("pad_id"), fmt::format("{}", vocabulary.pad_id));
  EXPECT_EQ(ids.at("unk_id"), fmt::format("{}", vocabulary.unk_id));
  EXPECT_EQ(ids.at("seq_len"), fmt::format("{}", vocabulary.max_length));
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const auto token = reader.fields(table("alt", "| field of a token | type |"));
    EXPECT_EQ(token.at("token_data"), vocabulary.text(id));
    EXPECT_EQ(token.at("token_score"), fmt::format("{}", vocabulary.score(id)));
    EXPECT_EQ(number(token.at("token_type")),
              alt::encode_token_type(alt::TypeNumbering::canonical, vocabulary.type(id)));
  }
  end_section(reader, end, 0x19a);

  end = begin_section(reader, alt::Section::tensors);
  const auto counts = reader.fields(table("alt", "| field | type |", "### Tensors"));
  EXPECT_EQ(counts.at("tensor_count"), fmt::format("{}", model.size()));
  for (std::size_t i = 0; i < model.size(); ++i)
    expect_tensor(reader, table("alt", "| field of a tensor | type |", "### Tensors"), model);
  end_section(reader, end, 0x604);
  EXPECT_EQ(reader.field(table("alt", "| section | marker |").back().at(3)), fmt::format("{}", alt::kEndMarker));
  EXPECT_TRUE(reader.at_end());
}

TEST(AltPage, AFileOfVersion1IsReadByItsTables) {
  const auto file = support::read_annotated_hex("formats/alt/v1.hex");
  const Model model = support::read(file, "v1.alt");
  FieldReader reader(file);
  EXPECT_EQ(reader.field("i32"), fmt::format("{}", alt::kStartAltc));
  reader.pad_to(kAlign);

  std::size_t end = begin_section(reader, alt::Section::parameters);
  const auto parameters = reader.fields(table("alt", "| field | type |", "### Parameters of version 1"));
  EXPECT_EQ(parameters.size(), 12U);
  EXPECT_EQ(parameters.at("model_type"), model.card.model_type);
  expect_config(parameters, *model.config);
  end_section(reader, end, 0x67);

  end = begin_section(reader, alt::Section::tokenizer);
  auto ids = reader.fields(table("alt", "| field | type |", "### Tokenizer of version 1"));
  EXPECT_EQ(ids.at("vocab_size"), fmt::format("{}", model.vocabulary->size()));
  EXPECT_EQ(ids.at("eos_id"), fmt::format("{}", model.vocabulary->eos_id));
  for (std::size_t id = 0; id < model.vocabulary->size(); ++id)
    EXPECT_EQ(reader.field("text"), model.vocabulary->text(id));
  end_section(reader, end, 0xce);

  end = begin_section(reader, alt::Section::tensors);
  const auto counts = reader.fields(table("alt", "| field | type |", "### Tensors of version 1"));
  EXPECT_EQ(counts.at("tensor_count"), fmt::format("{}", model.size()));
  for (std::size_t i = 0; i < model.size(); ++i)
    expect_tensor(reader, table("alt", "| field of a tensor | type |", "### Tensors of version 1"), model);
  end_section(reader, end, 0x3fa);
  EXPECT_EQ(reader.field(table("alt", "| section | marker |").back().at(2)), fmt::format("{}", alt::kEndMarker));
  EXPECT_TRUE(reader.at_end());
}

}  // namespace
}  // namespace poise::page
