// What the ALT formats leave out of a model, as sentences.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/alt/tokens.hpp"
#include "formats/alt/write.hpp"
#include "formats/alt/write_alt_c.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "tokenizer/files/tokenizer_json_writer.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/kept_files.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::alt {
namespace {

// safetensors files name their framework with it: nothing about the model.
constexpr std::string_view kFramework = "format";

void note_attributes(const Model& model, Losses& losses) {
  std::vector<std::string> names;
  for (const auto& [key, value] : model.attributes) {
    if (key != kFramework) names.push_back(key);
  }
  losses.note_names(names, "attribute");
  losses.note_if(!model.vocabulary && has_gguf_tokenizer(model.attributes), "the vocabulary that attributes describe");
  names.clear();
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.attributes.empty()) names.push_back(tensor.name);
  }
  losses.note_names(names, "tensor's attributes");
}

// The rules for tokenizing text; ALT has only the tokens.
void note_text_rules(const Vocabulary& vocabulary, Losses& losses) {
  const Vocabulary usual;
  const std::optional<Vocabulary> ranked = sentencepiece_form(vocabulary);
  const Vocabulary& held = ranked ? *ranked : vocabulary;
  losses.note_if(held.kind != usual.kind,
                 "the kind of its vocabulary: readers will take it for byte-pair encoding by score");
  losses.note_if(!vocabulary.merges.empty(),
                 fmt::format("the vocabulary's {} merges{}", vocabulary.merges.size(),
                             ranked ? ": scores take their place, by which some words get other tokens" : ""));
  losses.note_if(held.add_dummy_prefix != usual.add_dummy_prefix,
                 "that no space is put before a text: readers will put one");
  losses.note_if(vocabulary.remove_extra_whitespaces != usual.remove_extra_whitespaces,
                 "that extra white space is removed from a text");
  losses.note_if(vocabulary.normalizer != usual.normalizer,
                 fmt::format("how a text is normalized ({})", vocabulary.normalizer));
  if (vocabulary.kind == VocabularyKind::sentencepiece_bpe ||
      vocabulary.kind == VocabularyKind::sentencepiece_unigram) {
    const NormalizerRules rules = normalizer_of(vocabulary);
    losses.note_if(rules.prepend_first,
                   "that the first part of a text alone gets a space in front, where it has none: readers will put one "
                   "before every text");
    losses.note_if(has_space_rules(rules),
                   "where spaces are in tokens: readers will take U+2581 in front of words for them");
    losses.note_if(denormalizer_of(vocabulary).has_value(), "how a decoded text is denormalized");
  }
  losses.note_if(
      held.kind == VocabularyKind::pipeline,
      "how a text is cut into tokens (its normalizer, pre-tokenizer, post-processor, decoder and added tokens)");
  losses.note_if(held.kind != VocabularyKind::pipeline && special_around(vocabulary) != usual_special_around(held),
                 fmt::format("which special tokens go around a text: readers will put {} after it",
                             held.bos_id < 0 ? "nothing in front and nothing" : "BOS in front and nothing"));
  const Value* added = vocabulary.pipeline.find("added_tokens");
  const auto* list = added == nullptr ? nullptr : added->get_if<Value::Array>();
  losses.note_if(held.kind != VocabularyKind::pipeline && list != nullptr && !list->empty(),
                 fmt::format("the vocabulary's {} added tokens: readers will not look for them in a prompt",
                             list == nullptr ? 0 : list->size()));
  losses.note_if(vocabulary.chat_template != Value(), "the chat template");
  std::vector<std::string> keys;
  for (const auto& [key, value] : config_beside_tokens(vocabulary)) keys.push_back(key);
  losses.note_names(keys, "key", " of tokenizer_config.json");
  losses.note_if(vocabulary.files.find(kSpecialTokensMap) != nullptr, std::string(kSpecialTokensMap));
}

// True when the card has the value of this key of config.json.
bool is_on_card(const Model& model, std::string_view key) {
  const Value* value = model.config_json.find(key);
  if (value == nullptr) return false;
  return (key == "license" && *value == Value(model.card.license)) ||
         (key == "base_model" && *value == Value(model.card.base_model));
}

void note_common(const Model& model, Losses& losses) {
  note_attributes(model, losses);
  std::vector<std::string> keys = other_config_keys(model);
  std::erase_if(keys, [&](const std::string& key) { return is_on_card(model, key); });
  losses.note_names(keys, "key", " of config.json");
  if (!model.config && model.config_json.empty() && model.size() > 0)
    losses.say("there is no configuration, so nothing can run the file");
  losses.note_if(model.config && model.config->dropout != 0, "dropout");
  if (model.vocabulary) note_text_rules(*model.vocabulary, losses);
}

// Reading version 1 fills in what it lacks; only differences from that are lost.
void note_tokens(const Vocabulary& vocabulary, Losses& losses) {
  bool scores = false;
  bool types = false;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const auto number = static_cast<std::int32_t>(id);
    scores = scores || vocabulary.score(id) != static_cast<float>(-number);
    types = types || type_by_id(vocabulary, id) != type_from_text(vocabulary, vocabulary.text(id), number);
  }
  losses.note_if(scores, "the tokens' scores: readers will take earlier tokens for better ones");
  losses.note_if(types, "the tokens' types");
}

void note_parameters(const Model& model, Losses& losses) {
  const Config& config = *model.config;
  const Config usual;
  losses.note_if(config.hidden_act != usual.hidden_act, fmt::format("hidden_act ({})", config.hidden_act));
  losses.note_if(config.initializer_range != usual.initializer_range,
                 fmt::format("initializer_range ({})", config.initializer_range));
  const bool tied = model.size() > 0 && model.find(family_of(model).output) == nullptr;
  losses.note_if(config.tie_word_embeddings != tied, "tie_word_embeddings");
  losses.note_if(model.vocabulary && model.vocabulary->max_length != config.max_position_embeddings,
                 "a longest sequence other than max_position_embeddings");
}

std::vector<std::string> losses_alt_c(const Model& model) {
  Losses losses("alt.c's dialect");
  losses.note_if(model.size() > 0, fmt::format("tensors: {} are left out", model.size()));
  losses.note_if(model.vocabulary && model.vocabulary->max_length != 0, "the longest sequence");
  if (const auto names = unknown_to_alt_c(model.card); !names.empty()) {
    losses.say(fmt::format("alt.c refuses empty texts: {} written as \"unknown\"", fmt::join(names, ", ")));
  }
  note_common(model, losses);
  return losses.take();
}

}  // namespace

std::vector<std::string> losses_v2(const Model& model, const WriteOptions& options) {
  if (is_for_alt_c(options)) return losses_alt_c(model);
  Losses losses("alt");
  note_common(model, losses);
  return losses.take();
}

std::vector<std::string> losses_v1(const Model& model, const WriteOptions&) {
  Losses losses("alt1");
  for (const std::string& field : card_fields(model.card)) losses.note(field);
  if (model.config) note_parameters(model, losses);
  if (model.vocabulary) note_tokens(*model.vocabulary, losses);
  note_common(model, losses);
  return losses.take();
}

}  // namespace poise::alt
