#include "ops/merge/token_rows.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/config_json.hpp"
#include "ops/merge/join_vocabularies.hpp"
#include "ops/merge/methods.hpp"
#include "ops/transform/token_axes.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "views/dense.hpp"
#include "views/first_rows.hpp"
#include "views/gathered_rows.hpp"
#include "views/row_order.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr std::string_view kKey = "tokenizer_source";
constexpr std::string_view kIdEnd = "token_id";  // of keys such as bos_token_id

std::string format_path(const Model& model) { return model.origin.path.string(); }

// Lists the models of a recipe, each once: the reference, then the sources in order.
std::vector<const Model*> list_models(const MergeRecipe& recipe, const TokenRows::Models& models,
                                      const Model& reference) {
  std::vector<const Model*> list = {&reference};
  for (const MergeSlice& slice : recipe.slices) {
    for (const MergeSource& source : slice.sources) {
      const Model* model = &*models.at(source.model);
      if (std::ranges::find(list, model) == list.end()) list.push_back(model);
    }
  }
  return list;
}

const Model* find_source(const MergeRecipe& recipe, const TokenRows::Models& models, const Model& reference) {
  const std::string& named = recipe.tokenizer_source;
  if (named == "base" || named == "union") return &reference;
  if (const auto found = models.find(named); found != models.end()) return &*found->second;
  for (const auto& [path, model] : models) {
    if (is_same_model(path, named)) return &*model;
  }
  std::vector<std::string> paths;
  for (const auto& [key, model] : models) paths.push_back(key.string());
  refuse_recipe(recipe, fmt::format("{}: expected base, union or one of the models ({}); found \"{}\"", kKey,
                                    list_names(paths), shorten(named, 60)));
}

// Counts the tokens up to the last one that is in use or has a special id. Later ones only pad matrices.
std::size_t count_tokens_before_padding(const Vocabulary& vocabulary) {
  std::size_t size = vocabulary.size();
  while (size > 0 && vocabulary.type(size - 1) == TokenType::unused && !is_special_id(vocabulary, size - 1)) --size;
  return size;
}

// Replaces the special ids in a configuration by those of another one.
Attributes replace_ids(const Attributes& config, const Attributes& other) {
  Attributes result;
  for (const auto& [key, value] : config) {
    if (!key.ends_with(kIdEnd)) {
      result.set(key, value);
    } else if (const Value* id = other.find(key)) {
      result.set(key, *id);
    }
  }
  for (const auto& [key, value] : other) {
    if (key.ends_with(kIdEnd)) result.set(key, value);
  }
  return result;
}

// Returns the special ids of a model by the keys of config.json: those of its configuration, or else of its vocabulary.
Attributes list_special_ids(const Attributes& config, const Vocabulary& vocabulary) {
  Attributes ids;
  for (const auto& [key, value] : config) {
    if (key.ends_with(kIdEnd)) ids.set(key, value);
  }
  if (!ids.empty()) return ids;
  for (const auto& [key, id] : {std::pair("bos_token_id", vocabulary.bos_id),
                                {"eos_token_id", vocabulary.eos_id},
                                {"pad_token_id", vocabulary.pad_id}}) {
    if (id >= 0) ids.set(key, std::int64_t{id});
  }
  return ids;
}

// Returns true if each row of the result is the matrix's row with the same index. Requires: there is only one matrix.
bool are_first_rows(const RowSources& rows) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].front().row != row) return false;
  }
  return true;
}

}  // namespace

TokenRows::TokenRows(const MergeRecipe& recipe, const Models& models, const Model& reference)
    : reference_(&reference), source_(find_source(recipe, models, reference)) {
  if (!recipe.base.empty()) base_ = &*models.at(recipe.base);
  const std::vector<const Model*> all = list_models(recipe, models, reference);
  std::vector<NamedVocabulary> vocabularies;
  std::vector<std::uint64_t> row_counts;
  std::size_t own = 0;
  for (const Model* model : all) {
    const std::string option = fmt::format("{}: {}", kKey, format_path(*model));
    Model named(model->header());
    move_described_vocabulary(named, option);
    if (!named.vocabulary)
      refuse_recipe(recipe, fmt::format("{}: {} has no tokenizer, so its tokens are unknown; add its tokenizer files, "
                                        "or leave out {}",
                                        kKey, format_path(*model), kKey));
    const std::vector<TokenAxis> axes = find_token_axes(*model, option);
    const std::uint64_t rows = count_token_rows(*model, axes, option);
    row_counts.push_back(rows);
    if (model == reference_) {
      for (const TokenAxis& axis : axes) axes_.emplace(axis.tensor, axis.axis);
    }
    const std::size_t tokens = named.vocabulary->size();
    Vocabulary vocabulary = keep_first_tokens(*std::move(named.vocabulary), static_cast<std::size_t>(rows));
    if (model == source_) {
      own = vocabularies.size();
      if (tokens > rows)
        notes_.push_back(fmt::format("{} has no rows for {} at the end; the result does not have them",
                                     format_path(*model),
                                     format_count(tokens - static_cast<std::size_t>(rows), "token")));
      // Counted before the next call, which may move the vocabulary before it evaluates other arguments.
      const auto used = count_tokens_before_padding(vocabulary);
      vocabulary = keep_first_tokens(std::move(vocabulary), used);
      has_other_tokens_ = vocabulary.size() != tokens;
    }
    vocabularies.push_back({format_path(*model), std::move(vocabulary)});
  }
  const std::size_t size = vocabularies[own].vocabulary.size();
  if (size == 0) refuse_recipe(recipe, fmt::format("{}: {} has no tokens", kKey, format_path(*source_)));
  JoinedVocabulary joined = join_vocabularies(vocabularies, own, recipe.tokenizer_source == "union");
  vocabulary_ = std::move(joined.vocabulary);
  has_other_tokens_ = has_other_tokens_ || vocabulary_.size() != size;
  std::ranges::move(joined.notes, std::back_inserter(notes_));
  for (std::size_t i = 0; i < all.size(); ++i) tokens_.emplace(all[i], Tokens{std::move(joined.ids[i]), row_counts[i]});
}

std::optional<std::size_t> TokenRows::find_axis(const std::string& tensor) const {
  const auto found = axes_.find(tensor);
  return found == axes_.end() ? std::nullopt : std::optional(found->second);
}

Tensor TokenRows::arrange(const Model& own, std::size_t axis, const std::vector<Input>& inputs,
                          std::size_t in_slice) const {
  std::vector<const std::vector<TokenId>*> ids;
  std::uint32_t own_input = 0;
  std::optional<std::uint32_t> base_input;
  for (const Input& input : inputs) {
    const auto number = static_cast<std::uint32_t>(ids.size());
    if (input.model == &own) own_input = number;
    if (input.model == base_) base_input = number;
    ids.push_back(&tokens_.at(input.model).ids);
  }
  RowSources rows;
  std::vector<std::uint32_t> used;  // the inputs whose rows the result has
  std::vector<RowSource> places;
  const auto add = [&](std::uint32_t input, std::size_t token) {
    const TokenId id = (*ids[input])[token];
    if (id < 0) return;
    const auto found = std::ranges::find(used, input);
    const auto matrix = static_cast<std::uint32_t>(found - used.begin());
    if (found == used.end()) used.push_back(input);
    places.push_back({matrix, static_cast<std::uint32_t>(id)});
  };
  for (std::size_t token = 0; token < vocabulary_.size(); ++token) {
    places.clear();
    add(own_input, token);
    if (places.empty() && base_input) add(*base_input, token);
    for (std::size_t begin = 0, end = in_slice; places.empty() && begin < inputs.size();
         begin = end, end = inputs.size()) {
      for (std::size_t input = begin; input < end; ++input) add(static_cast<std::uint32_t>(input), token);
    }
    if (places.empty())
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: no model has a row for the token {} (\"{}\")", inputs[own_input].tensor->name, token,
                              shorten(vocabulary_.text(token), 40)));
    rows.add(places);
  }
  const Tensor& tensor = *inputs[own_input].tensor;
  const std::uint64_t size = vocabulary_.size();
  if (used.size() == 1 && used.front() == own_input && are_first_rows(rows)) {
    if (tensor.shape[axis] == size) return tensor;
    return axis == 0 ? keep_first_rows(tensor, size) : keep_first_columns(tensor, size);
  }
  std::vector<Tensor> matrices;
  for (const std::uint32_t input : used) {
    const Tensor& matrix = *inputs[input].tensor;
    if (!has_float_elements(matrix))
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: {} has it as {}, and rows of tokens move only as numbers", matrix.name,
                              format_path(*inputs[input].model), describe_stored_type(matrix)));
    matrices.push_back(axis == 0 ? matrix : transpose_view(make_dense_numbers(matrix)));
  }
  Shape shape = matrices.front().shape;
  shape.front() = size;
  Tensor result = make_dense(tensor.name, std::move(shape), DType::f32, gather_rows(matrices, std::move(rows)));
  if (tensor.layout == Layout::dense) result.attributes = tensor.attributes;
  return axis == 0 ? result : transpose_view(std::move(result));
}

void TokenRows::change_header(Model& made) const {
  const std::string path = format_path(made);
  for (const std::string& note : notes_) made.warnings.push_back({Severity::warning, note, {}, std::nullopt});
  move_described_vocabulary(made, kKey);
  made.vocabulary = vocabulary_;
  set_vocabulary_size(made, vocabulary_.size());
  if (has_other_tokens_ || source_ != reference_) drop_tokenizer_files(made);
  if (source_ == reference_) return;
  const Attributes ids = list_special_ids(source_->config_json, vocabulary_);
  if (!made.config_json.empty()) {
    Attributes config = replace_ids(made.config_json, ids);
    if (const auto* text = config.get_if<Attributes>("text_config")) {
      const auto* other = source_->config_json.get_if<Attributes>("text_config");
      config.set("text_config", other == nullptr ? *text : replace_ids(*text, *other));
    }
    parse_config(made, std::move(config), path);
  }
  const Attributes generation = read_generation_config(made);
  const Attributes other = read_generation_config(*source_);
  if (!generation.empty() || !other.empty())
    made.attributes.set(std::string(kGenerationConfig), replace_ids(generation, other.empty() ? ids : other));
}

}  // namespace poise
