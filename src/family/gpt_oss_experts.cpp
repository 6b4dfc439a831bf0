#include "family/gpt_oss_experts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "family/expert_stacks.hpp"
#include "family/families.hpp"
#include "family/text_model.hpp"
#include "schemes/mxfp4.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/mx_blocks.hpp"

namespace poise {
namespace {

constexpr std::string_view kExperts = "mlp.experts.";

constexpr std::array<std::string_view, 2> kGateUp = {"gate_proj", "up_proj"};
constexpr std::array<std::string_view, 1> kDown = {"down_proj"};
constexpr std::array<ExpertStack, 2> kStacks = {{{"gate_up_proj", kGateUp}, {"down_proj", kDown}}};

// The layer of a tensor of experts.
std::optional<std::int32_t> layer_of(const Family& family, std::string_view name) {
  const std::string canonical = table_name(family, name);
  const auto numbered = family.tensors.in_layer(canonical);
  return numbered && numbered->rest.starts_with(kExperts) ? std::optional(numbered->number) : std::nullopt;
}

// True if all matrices of experts are blocks of MXFP4.
bool all_are_mxfp4(const Model& model, const Family& family) {
  return std::ranges::all_of(model.tensors(), [&](const Tensor& tensor) {
    return !layer_of(family, tensor.name) || tensor.shape.size() != 2 || is_mxfp4_blocks(tensor);
  });
}

ExpertsStored wanted(const Model& model, const Family& family, ExpertsStored from, WeightReader reader, bool numbers) {
  if (reader == WeightReader::llama_cpp) return ExpertsStored::separate;
  if (from == ExpertsStored::stacked_out_in) return numbers ? ExpertsStored::stacked_in_out : from;
  if (from == ExpertsStored::stacked_in_out || reader == WeightReader::any) return from;
  return !numbers && all_are_mxfp4(model, family) ? ExpertsStored::stacked_out_in : ExpertsStored::stacked_in_out;
}

}  // namespace

ExpertsStored gpt_oss_experts(const Model& model) {
  const Family& family = family_of(model);
  const auto of_first_layer = [&](std::string_view name) {
    return find_weight(model, family, fmt::format("{}0.{}{}", family.tensors.layers, kExperts, name));
  };
  if (of_first_layer("0.gate_proj.weight") != nullptr) return ExpertsStored::separate;
  const Tensor* stack = of_first_layer(kStacks[0].name);
  const bool is_mx = stack != nullptr && mx_scheme(stack->layout) != nullptr;
  return is_mx ? ExpertsStored::stacked_out_in : ExpertsStored::stacked_in_out;
}

std::optional<Reformed> reformed_gpt_oss(const Model& model, WeightReader reader, bool numbers) {
  const Family& family = family_of(model);
  const ExpertsStored from = gpt_oss_experts(model);
  const ExpertsStored to = wanted(model, family, from, reader, numbers);
  if (from == to) return text_model(model, reader, numbers);
  Reformed result{Model(model.header()), {}, {}};
  std::map<std::int32_t, ExpertLayer> made;
  for (const Tensor& tensor : model.tensors()) {
    if (const auto number = layer_of(family, tensor.name)) {
      std::string prefix = fmt::format("{}{}.{}", family.tensors.layers, *number, kExperts);
      const auto [layer, is_new] = made.try_emplace(*number, model, std::move(prefix), kStacks, result.model);
      if (is_new) layer->second.convert(from, to);
      if (layer->second.used().contains(&tensor)) {
        result.replaced.push_back(tensor.name);
        continue;
      }
    }
    Tensor named = tensor;
    if (reader == WeightReader::llama_cpp) named.name = table_name(family, tensor.name);
    if (named.name != tensor.name) result.replaced.push_back(tensor.name);
    result.model.add(std::move(named));
  }
  if (to == ExpertsStored::stacked_out_in) result.model.config_json.set("quantization_config", mxfp4_config());
  return result;
}

}  // namespace poise
