#include "family/text_model.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/config_effects.hpp"
#include "family/families.hpp"

namespace poise {
namespace {

// These keys may be next to text_config. They count for the text model unless it has them itself.
constexpr std::array<std::string_view, 3> kTokens = {"bos_token_id", "eos_token_id", "pad_token_id"};
// These keys describe the file as a whole. The text model's configuration leaves them out without a warning.
constexpr std::array<std::string_view, 7> kOfTheFile = {
    "architectures", "model_type", "dtype", "torch_dtype", "transformers_version", "text_config", "use_cache"};

// Returns the configuration of the text model. Requires: the family's keys are in a nested object.
Attributes make_text_config(const Model& model, const Family& family, std::vector<std::string>& losses) {
  Attributes text = find_family_keys(family, model.config_json);
  std::vector<std::string> lost;
  for (const auto& [key, value] : model.config_json) {
    if (std::ranges::find(kTokens, key) != kTokens.end()) {
      if (text.find(key) == nullptr) text.set(key, value);
    } else if (std::ranges::find(kOfTheFile, key) == kOfTheFile.end()) {
      lost.push_back(key);
    }
  }
  text.set("model_type", family.text_type);
  if (!lost.empty())
    losses.push_back(fmt::format("only the text model is written; the configuration of the others is lost: {}",
                                 list_names(lost, 3)));
  return text;
}

}  // namespace

std::optional<ConvertedWeights> keep_text_model(const Model& model, WeightReader reader, bool) {
  if (reader != WeightReader::llama_cpp || !model.config) return std::nullopt;
  const Family& family = find_family_or_llama(model);
  const bool nested = !family.nested.empty();
  const auto is_named = [&](const Tensor& tensor) { return find_table_name(family, tensor.name) == tensor.name; };
  if (!nested && std::ranges::all_of(model.tensors(), is_named)) return std::nullopt;
  ConvertedWeights result{Model(model.header()), {}, {}};
  if (nested) {
    if (const auto other = describe_other_text_model(model)) throw Error(ErrorKind::unsupported, *other, {});
    if (&find_family_keys(family, model.config_json) != &model.config_json)
      result.model.config_json = make_text_config(model, family, result.losses);
    result.model.card.model_type = family.text_type;
  }
  std::vector<std::string> others;
  for (const Tensor& tensor : model.tensors()) {
    std::string name = find_table_name(family, tensor.name);
    if (nested && !family.tensors.has(name)) {
      others.push_back(tensor.name);
      continue;
    }
    if (name != tensor.name) result.replaced.push_back(tensor.name);
    Tensor named = tensor;
    named.name = std::move(name);
    result.model.add(std::move(named));
  }
  if (!others.empty()) {
    const std::string count =
        others.size() == 1 ? "another tensor is" : fmt::format("{} other tensors are", others.size());
    result.losses.push_back(fmt::format("only the text model is written; {} lost: {}", count, list_names(others, 3)));
  }
  return result;
}

}  // namespace poise
