#include "tokenizer/sentencepiece_normalizer.hpp"

#include <poise/error.hpp>

#include "tokenizer/pipeline/base64.hpp"
#include "tokenizer/pipeline/fields.hpp"

namespace poise {
namespace {

constexpr const char* kType = "Precompiled";
constexpr const char* kRules = "precompiled_charsmap";

}  // namespace

std::string normalizer_rules(const Vocabulary& vocabulary) {
  const auto normalizer = Fields(vocabulary.pipeline, "").map("normalizer");
  if (!normalizer) return {};
  if (const std::string type = normalizer->required_text("type"); type != kType) throw_unknown_type(*normalizer, type);
  const auto rules = base64_decoded(normalizer->required_text(kRules));
  if (!rules) throw Error(ErrorKind::invalid_file, "precompiled_charsmap: no base64");
  return *rules;
}

void set_normalizer_rules(Vocabulary& vocabulary, std::string_view rules) {
  vocabulary.pipeline.set("normalizer", Attributes{{"type", kType}, {kRules, to_base64(rules)}});
}

}  // namespace poise
