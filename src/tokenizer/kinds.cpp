#include "tokenizer/kinds.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

constexpr std::array kKinds = std::to_array<VocabularyKindRow>({
    {VocabularyKind::sentencepiece_bpe, "sentencepiece_bpe", make_sentencepiece_bpe},
    {VocabularyKind::sentencepiece_unigram, "sentencepiece_unigram", make_sentencepiece_unigram},
    {VocabularyKind::byte_pair, "byte_pair", make_byte_pair},
    {VocabularyKind::pipeline, "pipeline", make_pipeline},
});

}  // namespace

const VocabularyKindRow& get_kind_row(VocabularyKind kind) {
  const auto* row = std::ranges::find(kKinds, kind, &VocabularyKindRow::kind);
  if (row == kKinds.end())
    throw Error(ErrorKind::internal, fmt::format("vocabulary kind {} has no row", static_cast<int>(kind)));
  return *row;
}

const VocabularyKindRow* find_kind_row(std::string_view name) {
  const auto* row = std::ranges::find(kKinds, name, &VocabularyKindRow::name);
  return row == kKinds.end() ? nullptr : row;
}

void check_normalizer_has_rules(const Vocabulary& vocabulary) {
  const std::string& normalizer = vocabulary.normalizer;
  if (normalizer.empty() || normalizer == "identity") return;
  throw Error(
      ErrorKind::unsupported,
      fmt::format(
          "text cannot be tokenized: the vocabulary's normalizer is \"{}\", and the vocabulary does not hold its rules",
          normalizer));
}

}  // namespace poise
