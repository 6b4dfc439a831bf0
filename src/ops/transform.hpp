// transform: the middle of a conversion. Makes a model of lazy tensors out of another: select, cast.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include <poise/convert.hpp>

#include "formats/format.hpp"
#include "tensor/cast.hpp"

namespace poise {

// Collects what each pair of types lost; filled while the transformed tensors are read.
using CastReports = std::map<std::pair<DType, DType>, std::shared_ptr<CastReport>>;

struct Transformed {
  Model model;
  std::size_t skipped = 0;
  CastReports casts;
};

// Throws bad_argument when a pattern matches nothing or options.dtype is none of f32, f16 and bf16.
Transformed transform(Model model, const Format& target, const ConvertOptions& options);

}  // namespace poise
