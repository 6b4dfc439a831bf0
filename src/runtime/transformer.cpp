#include "runtime/transformer.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "model/check.hpp"
#include "model/config_effects.hpp"
#include "model/config_json.hpp"
#include "model/roles.hpp"
#include "model/tiny_llama.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse(const Model& model, const std::string& reason, ErrorKind kind = ErrorKind::unsupported) {
  throw Error(kind, fmt::format("cannot run this model: {}", reason), model.origin.path.string());
}

void require_parts(const Model& model) {
  std::vector<std::string_view> missing;
  if (!model.config) missing.push_back(model.config_json.empty() ? "configuration (hyperparameters)" : "configuration that Poise knows");
  if (model.size() == 0) missing.push_back("tensors");
  if (!missing.empty()) refuse(model, fmt::format("it has no {}", fmt::join(missing, " and no ")));
}

// A weight that the forward pass would pass over, such as a bias, makes the result wrong.
void refuse_unknown_weights(const Model& model) {
  std::vector<std::string_view> unknown;
  for (const Tensor& tensor : model.tensors()) {
    const std::string_view name = tensor.name;
    const bool of_model = name.starts_with("model.") || name.starts_with("lm_head.");
    const bool computed = name.ends_with(".rotary_emb.inv_freq");  // old checkpoints store it; rope_theta says the same
    if (of_model && !computed && !role_from_name(name).known()) unknown.push_back(name);
  }
  if (!unknown.empty()) refuse(model, fmt::format("a Mistral or Llama model has no {}", fmt::join(unknown, ", ")));
}

void check_mistral(const Model& model) {
  const Config& config = *model.config;
  if (const auto faults = check_consistency(model); !faults.empty()) refuse(model, fmt::format("{}", fmt::join(faults, "; ")), ErrorKind::invalid_file);
  if (config.head_dim % 2 != 0) refuse(model, fmt::format("head_dim is {}: rotary embeddings need an even number", config.head_dim));
  refuse_unknown_weights(model);
}

void check_tiny_llama(const Model& model) {
  std::vector<std::string> faults = check_consistency(model);
  if (faults.empty()) faults = check_tiny_llama_config(*model.config);
  if (!faults.empty()) refuse(model, fmt::format("{}", fmt::join(faults, "; ")), ErrorKind::invalid_file);
}

}  // namespace

std::unique_ptr<const Transformer> make_transformer(const Model& model) {
  const std::string& type = model.card.model_type;  // empty where a file does not say; the tensors' names and shapes do
  if (!type.empty() && !is_known_family(type)) {
    refuse(model, fmt::format("model_type is \"{}\", only mistral, llama and tiny_llama are supported", type));
  }
  require_parts(model);
  if (const auto effects = effects_not_followed(model); !effects.empty()) refuse(model, fmt::format("{}", fmt::join(effects, "; ")));
  if (type == kTinyLlama) {
    check_tiny_llama(model);
    return make_tiny_llama(model);
  }
  check_mistral(model);
  return make_mistral(model);
}

}  // namespace poise
