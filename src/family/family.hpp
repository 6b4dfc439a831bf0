// A Family has the properties of the models that one class of transformers computes. families.cpp lists all families.
//
// General code reads these properties and never compares a family's name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "family/config_view.hpp"
#include "family/tensor_table.hpp"

namespace poise {

struct DecoderPlan;

// Names the program that reads weights. A family may store them in another form for each program.
enum class WeightReader : std::uint8_t { any, transformers, llama_cpp };

// Describes a tensor that some checkpoints store although the configuration implies it.
struct ComputedTensor {
  std::string_view ending;  // how the tensor's name ends
  std::string_view from;    // the key of config.json that implies it
};

// Describes a prefix of tensors' names, and another one that some checkpoints have in its place.
struct NameBeginning {
  std::string_view canonical;
  std::string_view other;
};

// Holds a model with its weights in another form.
struct ConvertedWeights {
  Model model;
  std::vector<std::string> replaced;  // the names of original tensors that others replace
  std::vector<std::string> losses;    // what is lost, one sentence each
};

struct Family {
  std::string_view model_type = {};          // the name in config.json
  std::string_view transformers_class = {};  // the class in "architectures"; empty if transformers has none
  std::string_view title = {};               // the name in messages: "a {title} model"

  std::string_view hidden_act = {};  // the default
  // Reads the hyperparameters, with the family's defaults. Throws what ConfigKeys throws.
  Config (*read_config)(const ConfigKeys& keys);
  // The object of config.json that has the family's keys; empty: config.json itself.
  std::string_view nested = {};
  std::string_view text_type = {};  // the model_type of that nested object
  // Returns why a configuration that check_config() accepts is not valid for this family, a sentence each. Null: always
  // valid.
  std::vector<std::string> (*faults)(const ConfigView& view) = nullptr;
  // Returns the computation. Throws unsupported or invalid_file, without path, for what Poise cannot run. Requires: no
  // faults.
  DecoderPlan (*plan)(const ConfigView& view);
  // The keys of config_effects.cpp that the family implements, or checks in faults() or plan().
  std::span<const std::string_view> followed = {};
  bool has_dropout = false;             // Poise writes the key "dropout" even if it is 0
  std::string_view window_switch = {};  // sliding_window counts only when this key is true; empty: it always counts

  // The family's tensors. Names with one of these prefixes are weights: Poise does not run a model with a weight that
  // the table lacks.
  TensorTable tensors = {};
  std::span<const std::string_view> prefixes = {};
  std::span<const ComputedTensor> computed = {};
  std::span<const NameBeginning> spellings = {};
  std::string_view embedding = {};  // one row for each token
  std::string_view output = {};     // computes the scores; with tied embeddings, the embedding does

  // Returns how the model stores its experts. Null: every checkpoint has separate ones.
  ExpertsStored (*find_experts_stored)(const Model& model) = nullptr;
  // Returns the model with its weights in the form that `reader` expects, as lazy views. With `numbers`, decodes codes
  // that are stored in another order than dense numbers (stacked_out_in). std::nullopt if the weights have that form
  // already. Null: they always have it. Throws invalid_file (without path) for tensors that do not fit each other, and
  // unsupported for a text model of another type than the family's.
  std::optional<ConvertedWeights> (*convert_weights)(const Model& model, WeightReader reader, bool numbers) = nullptr;

  // The token that ends a text, for models without a vocabulary; -1: none.
  std::int32_t end_of_text = -1;
};

// Returns the row of computed tensors that the name belongs to, or nullptr.
const ComputedTensor* find_computed_tensor(const Family& family, std::string_view name);

}  // namespace poise
