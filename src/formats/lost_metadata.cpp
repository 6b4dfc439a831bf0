#include "formats/lost_metadata.hpp"

#include <fmt/format.h>

#include "formats/metadata.hpp"
#include "tokenizer/gguf_vocabulary.hpp"

namespace poise {

std::vector<std::string> metadata_losses(const Model& model, std::string_view files) {
  std::vector<std::string> result;
  const auto note = [&](bool lost, std::string_view what) {
    if (lost) result.push_back(fmt::format("{} cannot hold {}", files, what));
  };
  note(model.card != Card{}, "the card");
  note(model.config || !model.config_json.empty(), "the configuration");
  note(model.vocabulary.has_value() || has_gguf_tokenizer(model.attributes), "the vocabulary");
  std::vector<std::string> keys;
  for (const auto& [key, value] : model.attributes) keys.push_back(key);
  note(!keys.empty(), fmt::format("attributes ({})", listed(keys)));
  std::vector<std::string> tensors;
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.attributes.empty()) tensors.emplace_back(tensor.name);
  }
  note(!tensors.empty(), fmt::format("the attributes of tensors ({})", listed(tensors)));
  return result;
}

}  // namespace poise
