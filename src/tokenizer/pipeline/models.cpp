#include "tokenizer/pipeline/models.hpp"

#include <array>

#include <fmt/format.h>

namespace poise {
namespace {

struct Row {
  std::string_view type;
  std::unique_ptr<const PieceModel> (*make)(const Fields& fields, const ModelContext& context);
};

constexpr std::array kRows = std::to_array<Row>({
    {"BPE", make_bpe},
    {"Unigram", make_unigram},
    {"WordPiece", make_word_piece},
    {"WordLevel", make_word_level},
});

}  // namespace

std::unique_ptr<const PieceModel> make_piece_model(const Fields& fields, const ModelContext& context) { return row_of(kRows, fields).make(fields, context); }

TokenId token_named(const Fields& fields, std::string_view key, std::string_view text, const ModelContext& context) {
  if (const auto id = context.ids.find(text)) return *id;
  fields.fail(key, fmt::format("\"{}\" is no token", text));
}

}  // namespace poise
