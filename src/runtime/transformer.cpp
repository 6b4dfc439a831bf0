#include "runtime/transformer.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/families.hpp"
#include "runtime/decoder.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse(const Model& model, const std::string& reason, ErrorKind kind = ErrorKind::unsupported) {
  throw Error(kind, fmt::format("cannot run this model: {}", reason), model.origin.path.string());
}

// Returns true if a tensor has PEFT's or llama.cpp's name for a matrix of an adapter.
bool is_adapter(const Model& model) {
  return std::ranges::any_of(model.tensors(), [](const Tensor& tensor) {
    const std::string_view name = tensor.name;
    return name.find(".lora_A.") != std::string_view::npos || name.ends_with(".lora_a") ||
           name.find(".lora_embedding_A") != std::string_view::npos;
  });
}

void require_config_and_tensors(const Model& model) {
  if (!model.config && is_adapter(model)) {
    throw Error(ErrorKind::unsupported,
                "this is an adapter, not a model: run the model that it was trained for, with --lora and this path",
                model.origin.path.string());
  }
  std::vector<std::string_view> missing;
  if (!model.config)
    missing.push_back(model.config_json.empty() ? "configuration (hyperparameters)" : "configuration that Poise knows");
  if (model.size() == 0) missing.push_back("tensors");
  if (!missing.empty()) refuse(model, fmt::format("it has no {}", fmt::join(missing, " and no ")));
}

// Throws an error that lists the reasons, if there are any.
void refuse_if_any(const Model& model, const std::vector<std::string>& reasons,
                   ErrorKind kind = ErrorKind::unsupported) {
  if (!reasons.empty()) refuse(model, fmt::format("{}", fmt::join(reasons, "; ")), kind);
}

}  // namespace

std::unique_ptr<const Transformer> make_transformer(const Model& model, const Ranks& ranks) {
  // The type is empty if the file does not name it; then find_family_or_llama() returns Llama.
  const std::string& type = model.card.model_type;
  if (!type.empty() && find_family(type) == nullptr)
    refuse(model, fmt::format("model_type is \"{}\", only {} are supported", type, format_family_names()));
  require_config_and_tensors(model);
  const Family& family = find_family_or_llama(model);
  refuse_if_any(model, list_ignored_effects(model));
  refuse_if_any(model, check_consistency(model), ErrorKind::invalid_file);
  if (const auto refusal = find_run_refusal(model)) refuse(model, refusal->message(), refusal->kind());
  return make_decoder(model, family.plan(make_config_view(model)), ranks);
}

}  // namespace poise
