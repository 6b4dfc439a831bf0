#include "cli/model_options.hpp"

#include <utility>

namespace poise::cli {

std::shared_ptr<const Weights> ModelOptions::load() const {
  Model model = open(path, read);
  if (!lora.empty()) model = with_lora(model, lora);
  if (auto vocabulary = tokenizer.read()) model.vocabulary = std::move(vocabulary);
  return load_weights(model);
}

}  // namespace poise::cli
