#include "ops/transform/token_axes.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/metadata.hpp"
#include "ops/transform/revision.hpp"
#include "tokenizer/files/files.hpp"

namespace poise {
namespace {

constexpr std::string_view kVocabularySize = "vocab_size";

std::vector<TokenAxis> find_axes_in_table(const Model& model, const Family& family) {
  std::vector<TokenAxis> found;
  const auto add_axes = [&](std::span<const TensorRow> rows) {
    for (const TensorRow& row : rows) {
      const auto* axis = std::ranges::find(row.axes, &axis::vocabulary);
      const Tensor* tensor = axis == row.axes.end() ? nullptr : find_weight(model, family, row.name);
      const auto number = static_cast<std::size_t>(axis - row.axes.begin());
      if (tensor != nullptr && number < tensor->shape.size()) found.push_back({tensor->name, number});
    }
  };
  add_axes(family.tensors.first);
  add_axes(family.tensors.last);
  return found;
}

bool has_number(std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view word = name.substr(begin, end - begin);
    if (!word.empty() && std::ranges::all_of(word, is_ascii_digit)) return true;
    begin = end + 1;
  }
  return false;
}

const Attributes& find_text_keys(const Model& model) {
  const Attributes* text = model.config_json.get_if<Attributes>("text_config");
  return text != nullptr && text->find(kVocabularySize) != nullptr ? *text : model.config_json;
}

}  // namespace

std::vector<TokenAxis> find_token_axes(const Model& model, std::string_view option) {
  std::vector<TokenAxis> found = find_axes_in_table(model, find_family_or_llama(model));
  if (!found.empty()) return found;
  const auto* size = find_text_keys(model).get_if<std::uint64_t>(kVocabularySize);
  if (size == nullptr)
    refuse_option(option,
                  "the model has no embedding by a name that Poise knows, and no configuration with vocab_size");
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.shape.empty() && tensor.shape.front() == *size && !has_number(tensor.name))
      found.push_back({tensor.name, 0});
  }
  if (found.empty())
    refuse_option(option, fmt::format("no tensor outside the layers has a row for each of the {} tokens", *size));
  return found;
}

std::uint64_t count_token_rows(const Model& model, const std::vector<TokenAxis>& axes, std::string_view option) {
  const auto count_tokens = [&](const TokenAxis& row) { return model.find(row.tensor)->shape[row.axis]; };
  const std::uint64_t rows = count_tokens(axes.front());
  for (const TokenAxis& row : axes) {
    if (count_tokens(row) != rows)
      refuse_option(option, fmt::format("{} has {} rows for tokens, and {} has {}", axes.front().tensor, rows,
                                        row.tensor, count_tokens(row)));
  }
  return rows;
}

void move_described_vocabulary(Model& model, std::string_view option) {
  if (model.vocabulary) return;
  DescribedVocabulary described = make_described_vocabulary(model);
  if (!described.problem.empty())
    refuse_option(option,
                  fmt::format("Poise cannot read the vocabulary that the attributes describe: {}", described.problem));
  if (!described.made) return;
  model.vocabulary = std::move(described.made);
  model.attributes = std::move(described.attributes);
}

void drop_tokenizer_files(Model& model) {
  std::erase_if(model.origin.other_files, [](const DirectoryFile& file) {
    return std::ranges::find(kTokenizerFiles, file.name) != kTokenizerFiles.end();
  });
}

void set_vocabulary_size(Model& model, std::uint64_t size) {
  if (model.config || model.config_json.find(kVocabularySize) != nullptr)
    change_config(model, {{std::string(kVocabularySize), size}}, model.origin.path.string());
  // Families that Poise does not know may have the key in this object.
  const auto* text = model.config_json.get_if<Attributes>("text_config");
  if (text != nullptr && text->find(kVocabularySize) != nullptr) {
    Attributes changed = *text;
    changed.set(std::string(kVocabularySize), size);
    Attributes config = model.config_json;
    config.set("text_config", std::move(changed));
    parse_config(model, std::move(config), model.origin.path.string());
  }
  const std::string key = fmt::format("{}.{}", model.card.model_type, kVocabularySize);
  if (model.attributes.find(key) != nullptr) model.attributes.set(key, size);
}

}  // namespace poise
