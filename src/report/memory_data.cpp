// Computes the memory that a model needs while it runs, by the formulas of the runtime: its weights, and the keys and
// values of the tokens (runtime/kv_cache.hpp).
#include <algorithm>
#include <map>
#include <optional>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "family/check.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "kernels/cache_type.hpp"
#include "report/model_data.hpp"
#include "runtime/transformer.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

// Estimates the bytes of the weights in memory. Sparse tensors count as float32, because no kernel reads their layouts.
// Other tensors count as they are stored, although those of types without a kernel become float32, too.
std::uint64_t count_weight_bytes(const Model& model) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : model.tensors()) {
    const std::uint64_t own =
        is_sparse(tensor) ? checked_mul(tensor.elements(), sizeof(float)).value_or(UINT64_MAX) : tensor.size_bytes();
    bytes = saturating_add(bytes, own);
  }
  return bytes;
}

// Returns how the family computes; std::nullopt, with a reason, if Poise does not run the model.
std::optional<DecoderPlan> make_plan(const Model& model, std::string& reason) {
  const Family* const family = find_family(model.card.model_type);
  if (model.tensors().empty()) {
    reason = "the file has no tensors";
  } else if (!model.config) {
    reason = "the file states no configuration";
  } else if (family == nullptr) {
    reason = "Poise does not know the family";
  } else {
    try {
      const ConfigView view = make_config_view(model);
      const std::vector<std::string> faults = check_config(view, *family);
      if (faults.empty()) return family->plan(view);
      reason = faults.front();
    } catch (const Error& error) {
      reason = error.message();
    }
  }
  return std::nullopt;
}

}  // namespace

Attributes describe_memory(const Model& model) {
  Attributes data{{"weights", count_weight_bytes(model)}};
  std::string reason;
  const std::optional<DecoderPlan> plan = make_plan(model, reason);
  if (!plan) {
    data.set("reason", reason);
    return data;
  }
  std::map<std::uint64_t, std::uint64_t> layers;  // how many layers keep each number of positions; 0: all
  for (const LayerPlan& layer : plan->layers)
    ++layers[layer.window == 0 ? 0 : saturating_add(layer.window, Transformer::kMaxBatch - 1)];
  Value::Array groups;
  for (const auto& [positions, count] : layers)
    groups.push_back(Attributes{{"positions", positions}, {"layers", count}});
  Value::Array types;
  for (const CacheTypeRow& type : list_cache_types()) {
    // A layer stores the keys and values of kBlockPositions positions in this number of bytes.
    const std::uint64_t bytes = 2 * plan->kv_heads * type.count_block_bytes(plan->head_size);
    types.push_back(Attributes{{"type", std::string(type.name)}, {"block_bytes", bytes}});
  }
  data.set("block", std::uint64_t{kBlockPositions});
  data.set("groups", groups);
  data.set("types", types);
  data.set("context", model.config->max_position_embeddings);
  return data;
}

}  // namespace poise
