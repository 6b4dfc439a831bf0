// transform: the middle of a conversion. Makes a model of lazy tensors out of another, step by step (step.hpp).
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
  std::optional<Reformed> reformed;  // what it was made of, where its weights have another form than the input's
  std::vector<std::string> skipped;  // names
  std::unordered_set<std::string> perhaps_sparse;  // dense tensors that make_sparse() asks for their zeros
  std::vector<CastTensor> casts;
  std::vector<QuantizedTensor> quantized;
  DecodedTensors decoded;
};

// Throws bad_argument when a pattern matches nothing, a type is none that tensors can become, or options contradict
// each other. Reads no tensor's bytes. Tensors that are to be sparse are dense still: make_sparse() goes on.
Transformed transform(const Model& model, const Format& target, const ConvertOptions& options);

// Makes those tensors sparse that have enough zeros. Reads all that may become so. Throws what that throws.
void make_sparse(Transformed& transformed, const ConvertOptions& options);

}  // namespace poise
