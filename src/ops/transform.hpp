// transform: the middle of a conversion. Makes a model of lazy tensors out of another: select, cast, quantize.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poise/convert.hpp>

#include "formats/format.hpp"
#include "views/cast.hpp"
#include "views/quantize.hpp"

namespace poise {

// Collects what each pair of types lost; filled while the transformed tensors are read.
using CastReports = std::map<std::pair<DType, DType>, std::shared_ptr<CastReport>>;

// Collects what quantizing a tensor lost, likewise.
struct QuantizedTensor {
  std::string name;
  StoredType type;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::shared_ptr<QuantizationReport> report;
};

struct Transformed {
  Model model;
  std::size_t skipped = 0;
  CastReports casts;
  std::vector<QuantizedTensor> quantized;
};

// Throws bad_argument when a pattern matches nothing, a type is none that tensors can become, or options contradict each other.
Transformed transform(const Model& model, const Format& target, const ConvertOptions& options);

}  // namespace poise
