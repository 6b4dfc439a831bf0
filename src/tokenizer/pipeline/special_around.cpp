#include "tokenizer/pipeline/special_around.hpp"

#include <algorithm>
#include <utility>

namespace poise {
namespace {

constexpr const char* kPostProcessor = "post_processor";

}  // namespace

SpecialAround find_usual_special_around(const Vocabulary& vocabulary) {
  if (vocabulary.kind == VocabularyKind::pipeline || vocabulary.bos_id < 0) return {};
  return {{vocabulary.bos_id}, {}};
}

SpecialAround find_special_around(const Vocabulary& vocabulary) {
  const auto post = Fields(vocabulary.pipeline, "tokenizer").find_map(kPostProcessor);
  return post ? read_post_processor(*post, vocabulary.size()) : find_usual_special_around(vocabulary);
}

Attributes make_post_processor(const Vocabulary& vocabulary, const SpecialAround& around) {
  Value::Array single;
  Attributes special;
  const auto add = [&](TokenId id) {
    const std::string text(vocabulary.text(static_cast<std::size_t>(id)));
    single.emplace_back(Attributes{{"SpecialToken", Attributes{{"id", text}, {"type_id", 0}}}});
    special.set(text,
                Attributes{{"id", text}, {"ids", Value::Array{std::int64_t{id}}}, {"tokens", Value::Array{text}}});
  };
  std::ranges::for_each(around.before, add);
  single.emplace_back(Attributes{{"Sequence", Attributes{{"id", "A"}, {"type_id", 0}}}});
  std::ranges::for_each(around.after, add);
  return {{"type", "TemplateProcessing"}, {"single", std::move(single)}, {"special_tokens", std::move(special)}};
}

void set_special_around(Vocabulary& vocabulary, bool bos, bool eos) {
  SpecialAround around;
  if (bos && vocabulary.bos_id >= 0) around.before.push_back(vocabulary.bos_id);
  if (eos && vocabulary.eos_id >= 0) around.after.push_back(vocabulary.eos_id);
  if (around == find_usual_special_around(vocabulary)) {
    vocabulary.pipeline.erase(kPostProcessor);
  } else {
    vocabulary.pipeline.set(kPostProcessor, make_post_processor(vocabulary, around));
  }
}

}  // namespace poise
