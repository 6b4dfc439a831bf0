// transform: the middle of a conversion. Makes a model of lazy tensors from another one, step by step (step.hpp).
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <poise/convert.hpp>

#include "family/family.hpp"
#include "formats/format.hpp"
#include "ops/transform/step.hpp"

namespace poise {

struct Transformed {
  Model model;
  std::optional<Reformed> reformed;                // set if its weights have another form than the input's
  std::vector<std::string> skipped;                // names
  std::unordered_set<std::string> perhaps_sparse;  // dense tensors whose zeros make_sparse() counts
  std::vector<CastTensor> casts;
  std::vector<QuantizedTensor> quantized;
  DecodedTensors decoded;
  std::vector<MergedMatrices> merged;
};

// Throws bad_argument when a pattern matches nothing, a type is not a target type, or options contradict each other.
// Reads no tensor's bytes. Tensors that are to be sparse stay dense until make_sparse().
// `merged`: the types that adapters' matrices get where no other type is asked for; null: there are none.
Transformed transform(const Model& model, const Format& target, const ConvertOptions& options,
                      const MergedTypes* merged = nullptr);

// Makes tensors with enough zeros sparse. Reads all candidates. Throws what reading throws.
void make_sparse(Transformed& transformed, const ConvertOptions& options);

}  // namespace poise
