#include "tokenizer/pipeline/models.hpp"

#include <array>

#include <fmt/format.h>

namespace poise {
namespace {

struct ModelRow {
  std::string_view type;
  std::unique_ptr<const PieceModel> (*make)(const Fields& fields, const ModelContext& context);
};

constexpr std::array kModels = std::to_array<ModelRow>({
    {"BPE", make_bpe},
    {"Unigram", make_unigram},
    {"WordPiece", make_word_piece},
    {"WordLevel", make_word_level},
});

}  // namespace

TokenIndex index_model_tokens(const Vocabulary& vocabulary) {
  std::vector<bool> hidden;
  const auto model = Fields(vocabulary.pipeline, "tokenizer").find_map("model");
  if (const Value* list = model ? model->find("added_only") : nullptr) {
    const auto* ids = list->get_if<Value::Array>();
    if (ids == nullptr) model->fail("added_only", "expected a list");
    for (const Value& item : *ids) {
      const auto* id = item.get_if<std::uint64_t>();
      if (id == nullptr || *id >= vocabulary.size()) model->fail("added_only", "expected ids of tokens");
      hidden.resize(vocabulary.size());
      hidden[*id] = true;
    }
  }
  return TokenIndex(vocabulary, std::move(hidden));
}

std::unique_ptr<const PieceModel> make_piece_model(const Fields& fields, const ModelContext& context) {
  return find_row(kModels, fields).make(fields, context);
}

TokenId find_named_token(const Fields& fields, std::string_view key, std::string_view text,
                         const ModelContext& context) {
  if (const auto id = context.ids.find(text)) return *id;
  fields.fail(key, fmt::format("\"{}\" is not a token", text));
}

}  // namespace poise
