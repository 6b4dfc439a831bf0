#include "formats/losses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/config_effects.hpp"
#include "family/config_json.hpp"
#include "formats/metadata.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "views/dense.hpp"

namespace poise {

void Losses::note(std::string_view what) { sentences_.push_back(fmt::format("{} cannot hold {}", format_, what)); }

void Losses::note_names(const std::vector<std::string>& names, std::string_view noun, std::string_view owner) {
  if (!names.empty()) note(fmt::format("{}{} ({})", format_count(names.size(), noun), owner, list_names(names)));
}

void Losses::note_card(const Card& card) {
  const std::vector<std::string> fields = list_lost_card_fields(card);
  if (!fields.empty()) note(fmt::format("the card ({})", fmt::join(fields, ", ")));
}

void Losses::note_vocabulary(const Model& model, std::string_view instead) {
  note_if(model.vocabulary.has_value() || has_gguf_tokenizer(model.attributes),
          fmt::format("the vocabulary: {}", instead));
}

void Losses::note_other_config_keys(const Model& model) {
  const std::vector<std::string> keys = list_other_config_keys(model);
  note_if(!keys.empty(), fmt::format("config.json's other keys ({})", list_names(keys)));
}

std::vector<std::string> list_lost_card_fields(const Card& card) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : card_to_attributes(card)) {
    if (name != "model_type" && value != Value(std::string())) fields.push_back(name);
  }
  return fields;
}

std::vector<std::string> list_lost_metadata(const Model& model) {
  std::vector<std::string> lost;
  if (model.card != Card{}) lost.emplace_back("the card");
  if (model.config || !model.config_json.empty()) lost.emplace_back("the configuration");
  if (model.vocabulary || has_gguf_tokenizer(model.attributes)) lost.emplace_back("the vocabulary");
  std::vector<std::string> keys;
  for (const auto& [key, value] : model.attributes) keys.push_back(key);
  if (!keys.empty()) lost.push_back(fmt::format("attributes ({})", list_names(keys)));
  if (std::string tensors = describe_tensor_attributes(model); !tensors.empty()) lost.push_back(std::move(tensors));
  return lost;
}

std::string describe_tensor_attributes(const Model& model) {
  std::vector<std::string> tensors;
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.attributes.empty()) tensors.emplace_back(tensor.name);
  }
  return tensors.empty() ? std::string() : fmt::format("the attributes of tensors ({})", list_names(tensors));
}

std::vector<std::string> list_metadata_losses(const Model& model, std::string_view format) {
  Losses losses(format);
  for (const std::string& lost : list_lost_metadata(model)) losses.note(lost);
  return losses.release_sentences();
}

void refuse_tensor(std::string_view format, const Tensor& tensor, std::string_view why) {
  const std::string reason = why.empty() ? "" : fmt::format(": {}", why);
  Error error(ErrorKind::unsupported,
              fmt::format("{} cannot hold tensor {} ({}){}", format, tensor.name, describe_storage(tensor), reason));
  if (has_float_elements(tensor)) error = std::move(error).with({.kind = Remedy::Kind::dtype, .value = "f32"});
  throw std::move(error).with({.kind = Remedy::Kind::skip, .tensor = tensor.name});
}

void refuse_config_effects(std::string_view format, const Model& model) {
  if (const auto effects = list_effects_outside_config(model); !effects.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} cannot hold keys of config.json that change the computation: {}", format,
                            fmt::join(effects, "; ")));
  }
}

}  // namespace poise
