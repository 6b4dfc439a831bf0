#include "family/families.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr std::array kFamilies = std::to_array<const Family*>(
    {&llama::kMistralFamily, &llama::kMistral3Family, &llama::kLlamaFamily, &mixtral::kMixtralFamily,
     &qwen::kQwen2Family, &qwen::kQwen3Family, &qwen::kQwen3MoeFamily, &gemma::kGemmaFamily, &gemma::kGemma2Family,
     &gemma::kGemma3TextFamily, &gemma::kGemma3Family, &phi3::kPhi3Family, &olmo2::kOlmo2Family,
     &smollm3::kSmolLm3Family, &gpt2::kGpt2Family, &gpt_oss::kGptOssFamily, &tiny_llama::kTinyLlamaFamily});

}  // namespace

std::span<const Family* const> list_families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  const auto* found = std::ranges::find(kFamilies, model_type, &Family::model_type);
  return found == kFamilies.end() ? nullptr : *found;
}

const Family& find_family_or_llama(std::string_view model_type) {
  const Family* family = find_family(model_type);
  return family == nullptr ? llama::kLlamaFamily : *family;
}

const Attributes& find_family_keys(const Family& family, const Attributes& config_json) {
  const auto* object = family.nested.empty() ? nullptr : config_json.get_if<Attributes>(family.nested);
  return object == nullptr ? config_json : *object;
}

ExpertsStored find_experts_stored(const Model& model, const Family& family) {
  return family.find_experts_stored == nullptr ? ExpertsStored::separate : family.find_experts_stored(model);
}

ConfigView make_config_view(const Model& model) {
  const Family& family = find_family_or_llama(model);
  return {*model.config, find_family_keys(family, model.config_json), find_experts_stored(model, family)};
}

std::optional<ConvertedWeights> convert_weights(const Model& model, WeightReader reader, bool numbers) {
  const Family* family = find_family(model.card.model_type);
  return family == nullptr || family->convert_weights == nullptr ? std::nullopt
                                                                 : family->convert_weights(model, reader, numbers);
}

const Tensor* find_weight(const Model& model, const Family& family, std::string_view name) {
  if (const Tensor* tensor = model.find(name)) return tensor;
  for (const auto& [canonical, other] : family.spellings) {
    if (!name.starts_with(canonical)) continue;
    if (const Tensor* tensor = model.find(std::string(other).append(name.substr(canonical.size())))) return tensor;
  }
  return nullptr;
}

std::string find_table_name(const Family& family, std::string_view name) {
  if (family.tensors.has(name)) return std::string(name);
  for (const auto& [canonical, other] : family.spellings) {
    if (!name.starts_with(other)) continue;
    std::string spelled = std::string(canonical).append(name.substr(other.size()));
    if (family.tensors.has(spelled)) return spelled;
  }
  return std::string(name);
}

std::string format_family_names() {
  std::string text(kFamilies.front()->model_type);
  for (std::size_t i = 1; i < kFamilies.size(); ++i)
    text.append(i + 1 == kFamilies.size() ? " and " : ", ").append(kFamilies[i]->model_type);
  return text;
}

const ComputedTensor* find_computed_tensor(const Family& family, std::string_view name) {
  const auto found =
      std::ranges::find_if(family.computed, [&](const ComputedTensor& row) { return name.ends_with(row.ending); });
  return found == family.computed.end() ? nullptr : &*found;
}

}  // namespace poise
