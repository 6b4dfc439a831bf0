// This revision cuts the vocabulary: it keeps the first rows of the embedding and of the output matrix, and their
// tokens.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "ops/transform/revision.hpp"
#include "ops/transform/token_axes.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "views/first_rows.hpp"

namespace poise {
namespace {

constexpr std::string_view kSize = "vocab_size";
constexpr std::string_view kDropRows = "drop_rows";
constexpr std::size_t kMostSpecial = 8;  // the most tokens that a message lists

// Counts the tokens up to the last one that is in use. Later ones only pad matrices.
std::uint64_t count_used_tokens(const Vocabulary& vocabulary) {
  std::size_t size = vocabulary.size();
  while (size > 0 && vocabulary.type(size - 1) == TokenType::unused) --size;
  return size;
}

// Describes each special token whose row would be left out: a model without it runs differently, or not at all. Leaves
// out ids without a row, which the model cannot use.
std::vector<std::string> list_lost_special_tokens(const Model& model, std::uint64_t size, std::uint64_t rows) {
  std::vector<std::string> found;
  const auto add_ids = [&](const Attributes& map, std::string_view where) {
    for (const auto& [key, value] : map) {
      if (!key.ends_with("token_id")) continue;
      const auto* items = value.get_if<Value::Array>();
      for (const Value& id : items == nullptr ? Value::Array{value} : *items) {
        const auto* number = id.get_if<std::uint64_t>();
        if (number != nullptr && *number >= size && *number < rows)
          found.push_back(fmt::format("{} {} of {}", key, *number, where));
      }
    }
  };
  if (model.vocabulary) {
    const Vocabulary& vocabulary = *model.vocabulary;
    std::size_t bytes = 0;
    for (std::size_t id = static_cast<std::size_t>(size); id < std::min<std::uint64_t>(rows, vocabulary.size()); ++id) {
      const TokenType type = choose_special_token_type(vocabulary.type(id), vocabulary, id);
      const bool is_plain = type == TokenType::normal || type == TokenType::unused || type == TokenType::user_defined;
      if (type == TokenType::byte) {
        ++bytes;
      } else if (is_special_id(vocabulary, id) || !is_plain) {
        found.push_back(fmt::format("{} ({}, {})", vocabulary.text(id), id, to_string(type)));
      }
    }
    if (bytes > 0) found.push_back(fmt::format("{} of single bytes", format_count(bytes, "token")));
  }
  add_ids(model.config_json, "the configuration");
  if (const auto* text = model.config_json.get_if<Attributes>("text_config")) add_ids(*text, "text_config");
  add_ids(read_generation_config(model), "generation_config");
  return found;
}

void cut_tokens(Revision& revision, std::uint64_t size) {
  Model& model = revision.model;
  const std::size_t before = model.vocabulary ? model.vocabulary->size() : 0;
  if (before <= size) return;
  const std::size_t merges = model.vocabulary->merges.size();
  model.vocabulary = keep_first_tokens(*std::move(model.vocabulary), static_cast<std::size_t>(size));
  if (const Value* added = model.vocabulary->tokenizer_config.find("added_tokens_decoder"))
    model.vocabulary->tokenizer_config.set("added_tokens_decoder", keep_listed_ids_below(*added, size));
  drop_tokenizer_files(model);
  const std::size_t lost = merges - model.vocabulary->merges.size();
  revision.changes.push_back(fmt::format("tokens {} to {} are left out{}", size, before - 1,
                                         lost == 0 ? "" : fmt::format(", with {}", format_count(lost, "merge"))));
}

}  // namespace

void cut_vocabulary(Revision& revision, const ConvertOptions& options) {
  if (!options.vocab_size && !options.drop_rows) return;
  if (options.vocab_size && options.drop_rows)
    refuse_option(kDropRows, "vocab_size and drop_rows exclude each other: drop_rows keeps the rows of all tokens");
  const std::string_view option = options.drop_rows ? kDropRows : kSize;
  Model& model = revision.model;
  move_described_vocabulary(model, option);
  if (options.drop_rows && !model.vocabulary)
    refuse_option(option, "the model has no vocabulary, so no row is known to be without a token");
  const std::vector<TokenAxis> axes = find_token_axes(model, option);
  const std::uint64_t rows = count_token_rows(model, axes, option);
  const std::uint64_t size = options.vocab_size ? *options.vocab_size : count_used_tokens(*model.vocabulary);
  if (size == 0) refuse_option(option, "a model has at least 1 token");
  if (options.vocab_size && size > rows)
    refuse_option(option,
                  fmt::format("{} has only {} rows, and this option cannot add rows: expected at most {}, found "
                              "{}",
                              axes.front().tensor, rows, rows, size));
  const std::vector<std::string> special = list_lost_special_tokens(model, size, rows);
  if (!special.empty())
    refuse_option(option,
                  fmt::format("{} would leave out special tokens: {}", size, list_names(special, kMostSpecial)));
  if (size < rows) {
    revision.changes.push_back(fmt::format("{} of {} rows for tokens stay", size, rows));
    std::unordered_map<std::string, std::size_t> cut;
    for (const TokenAxis& row : axes) cut.emplace(row.tensor, row.axis);
    set_vocabulary_size(model, size);
    revision.change_tensors([&](Tensor& tensor) {
      const auto found = cut.find(tensor.name);
      if (found != cut.end())
        tensor = found->second == 0 ? keep_first_rows(tensor, size) : keep_first_columns(tensor, size);
      return true;
    });
  }
  cut_tokens(revision, size);
}

}  // namespace poise
