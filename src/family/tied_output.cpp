#include "family/tied_output.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "pack/pump.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

constexpr std::string_view kTied = "tie_word_embeddings";

// Returns the embedding's name with the prefix that the model's other tensors have.
std::string make_embedding_name(const Model& model, const Family& family) {
  for (const auto& [canonical, other] : family.spellings) {
    if (other.empty() || !family.embedding.starts_with(canonical)) continue;
    const auto has_prefix = [prefix = other](const Tensor& tensor) { return tensor.name.starts_with(prefix); };
    if (std::ranges::any_of(model.tensors(), has_prefix))
      return std::string(other).append(family.embedding.substr(canonical.size()));
  }
  return std::string(family.embedding);
}

bool have_same_parts(const Tensor& a, const Tensor& b) {
  if (a.layout != b.layout || !(a.attributes == b.attributes) || a.parts.size() != b.parts.size()) return false;
  return std::ranges::all_of(a.parts, [&](const Part& part) {
    const Part* other = b.part(part.role);
    return other != nullptr && other->dtype == part.dtype && have_same_bytes(*part.blob, *other->blob);
  });
}

bool have_same_numbers(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) return false;
  try {
    if (have_same_parts(a, b)) return true;
    const bool is_same_type =
        a.layout == Layout::dense && b.layout == Layout::dense && find_element_type(a) == find_element_type(b);
    if (is_same_type || !has_float_elements(a) || !has_float_elements(b)) return false;
    return have_same_bytes(*make_dense_blob(a, DType::f32), *make_dense_blob(b, DType::f32));
  } catch (const Error& error) {  // verify() reports bytes that cannot be read
    if (error.kind() == ErrorKind::internal) throw;
    return false;
  }
}

// Returns true if the file stores the numbers once, as PyTorch does with tensors that share memory.
bool have_shared_bytes(const Tensor& a, const Tensor& b) {
  return std::ranges::all_of(a.parts, [&](const Part& part) {
    const Part* other = b.part(part.role);
    if (other == nullptr) return false;
    const auto at = part.blob->stored();
    return &*part.blob == &*other->blob || (at && at == other->blob->stored());
  });
}

// Returns the model without `left_out`, and with another name for `renamed`. Each may be null.
Model copy_model(const Model& model, const Tensor* left_out, const Tensor* renamed = nullptr,
                 std::string_view name = {}) {
  Model copy(model.header());
  copy.reserve(model.size());
  for (const Tensor& tensor : model.tensors()) {
    if (&tensor == left_out) continue;
    Tensor kept = tensor;
    if (&tensor == renamed) kept.name = std::string(name);
    copy.add(std::move(kept));
  }
  return copy;
}

}  // namespace

void untie_output(ModelHeader& model) {
  model.config->tie_word_embeddings = false;
  if (model.config_json.empty()) return;
  const std::string nested(find_family_or_llama(model.card.model_type).nested);
  if (const auto* keys = nested.empty() ? nullptr : model.config_json.get_if<Attributes>(nested)) {
    Attributes inner = *keys;
    inner.set(std::string(kTied), false);
    model.config_json.set(nested, std::move(inner));
  }
  model.config_json.set(std::string(kTied), false);
}

std::optional<Model> resolve_tied_output(const Model& model) {
  if (!model.config || !model.config->tie_word_embeddings) return std::nullopt;
  const Family& family = find_family_or_llama(model);
  const Tensor* output = family.output.empty() ? nullptr : find_weight(model, family, family.output);
  if (output == nullptr) return std::nullopt;
  const auto warn = [&](Model& resolved, std::string text) {
    resolved.warnings.push_back({Severity::warning, std::move(text), model.origin.path.string(), std::nullopt});
  };
  const Tensor* embedding = find_weight(model, family, family.embedding);
  if (embedding == nullptr) return copy_model(model, nullptr, output, make_embedding_name(model, family));
  if (have_same_numbers(*embedding, *output)) {
    Model resolved = copy_model(model, output);
    if (!have_shared_bytes(*embedding, *output))
      warn(resolved,
           fmt::format("tensor {} is left out: it equals {} (tie_word_embeddings)", output->name, embedding->name));
    return resolved;
  }
  Model resolved = copy_model(model, nullptr);
  untie_output(resolved);
  warn(resolved, fmt::format("tie_word_embeddings is true, but {} differs from {}: both are kept, and "
                             "tie_word_embeddings becomes false",
                             output->name, embedding->name));
  return resolved;
}

std::optional<ConvertedWeights> store_tied_output(const Model& model) {
  if (!model.config || !model.config->tie_word_embeddings) return std::nullopt;
  const Family& family = find_family_or_llama(model);
  const Tensor* embedding = find_weight(model, family, family.embedding);
  if (embedding == nullptr || family.output.empty() || find_weight(model, family, family.output) != nullptr)
    return std::nullopt;
  Tensor output = *embedding;
  output.name = std::string(family.output);
  ConvertedWeights stored{copy_model(model, nullptr), {}, {}};
  stored.model.add(std::move(output));
  untie_output(stored.model);
  stored.losses.push_back(fmt::format("the file has {} twice, as {} too, because its readers require both",
                                      embedding->name, family.output));
  return stored;
}

std::optional<Model> resolve_aliases(const Model& model) {
  std::vector<std::pair<std::string, const Tensor*>> aliases;
  for (const auto& [key, value] : model.attributes) {
    const auto* name = value.get_if<std::string>();
    const Tensor* stored = name == nullptr || key == "format" ? nullptr : model.find(*name);
    if (stored != nullptr && model.find(key) == nullptr) aliases.emplace_back(key, stored);
  }
  if (aliases.empty()) return std::nullopt;
  Model resolved = copy_model(model, nullptr);
  for (const auto& [name, stored] : aliases) {
    Tensor tensor = *stored;
    tensor.name = name;
    resolved.add(std::move(tensor));
    resolved.attributes.erase(name);
  }
  return resolved;
}

}  // namespace poise
