#include "cli/model_options.hpp"

#include <utility>

namespace poise::cli {

Model ModelOptions::open_model() const {
  Model model = open(path, read);
  if (!lora.empty()) model = with_lora(model, lora);
  if (auto vocabulary = tokenizer.read()) model.vocabulary = std::move(vocabulary);
  return model;
}

std::shared_ptr<const Weights> ModelOptions::load() const { return load_weights(open_model()); }

}  // namespace poise::cli
