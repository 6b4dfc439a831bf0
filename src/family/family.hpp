// Family: what Poise knows of one architecture. A file each; families.cpp lists them.
//
// General code asks the row, never for a family by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "family/config_view.hpp"
#include "family/decoder_plan.hpp"
#include "family/tensor_table.hpp"
#include "family/weight_reader.hpp"

namespace poise {

// A tensor that some checkpoints store although it follows from the configuration.
struct ComputedTensor {
  std::string_view ending;  // of its name
  std::string_view from;    // the key of config.json that says the same
};

// Another way to begin the names of some tensors, which some checkpoints have.
struct NameBeginning {
  std::string_view canonical;
  std::string_view other;
};

// A model with its weights in another form.
struct Reformed {
  Model model;
  std::vector<std::string> replaced;  // the tensors that others were made of
  std::vector<std::string> losses;    // what went, one sentence each
};

struct Family {
  std::string_view model_type;               // in config.json
  std::string_view transformers_class = {};  // in its "architectures"; empty: transformers does not have it
  std::string_view title;                    // for people: "a {title} model"

  // Its configuration.
  std::string_view hidden_act = {};  // by default
  // The hyperparameters that the keys say, with the family's defaults for others. Throws what ConfigKeys throws.
  Config (*read_config)(const ConfigKeys& keys);
  // The object of config.json with all of its keys; empty: config.json itself.
  std::string_view nested = {};
  std::string_view text_type = {};  // the model_type of what that object describes alone
  // What keeps a configuration that check_config() finds sound from being one of this family, a sentence each. Null:
  // nothing.
  std::vector<std::string> (*faults)(const ConfigView& view) = nullptr;
  // How it computes. Throws unsupported or invalid_file, with no path, for what Poise cannot run. Requires: no faults.
  DecoderPlan (*plan)(const ConfigView& view);
  // Keys of config_effects.cpp that change its computation and that it does follow, or checks in faults() or plan().
  std::span<const std::string_view> followed = {};
  bool has_dropout = false;  // config.json always has the key
  std::string_view window_switch =
      {};  // the key without which, and true, sliding_window does not count; empty: it always does

  // Its tensors. Those that begin with a prefix are weights: one that the table does not have makes it another model.
  TensorTable tensors;
  std::span<const std::string_view> prefixes = {};
  std::span<const ComputedTensor> computed = {};
  std::span<const NameBeginning> spellings = {};
  std::string_view embedding = {};  // its rows are tokens
  std::string_view output = {};     // makes scores; where embeddings are tied, the embedding does

  // Checkpoints may store the same weights in several forms. A tensor of each form but the first, which no other form
  // has.
  std::span<const std::string_view> forms = {};
  // The model in the form that its reader takes, by views that compute when they are read. With `numbers`, codes that
  // several tensors hold become numbers. Nothing: it has that form. Throws invalid_file (without path) where tensors
  // are not what the form says, and unsupported for a text model that is another than the family's.
  std::optional<Reformed> (*reformed)(const Model& model, WeightReader reader, bool numbers) = nullptr;

  // The token that ends a text of a model without vocabulary; -1: none.
  std::int32_t end_of_text = -1;
};

// The row of computed tensors that the name belongs to; nullptr: none.
const ComputedTensor* computed_tensor(const Family& family, std::string_view name);

}  // namespace poise
