#include "api/report_values.hpp"

#include <cstdint>

namespace poise {

Attributes make_attributes(const ExtractedMatrix& matrix) {
  return {{"name", matrix.name},
          {"shape", Value::Array(matrix.shape.begin(), matrix.shape.end())},
          {"rank", matrix.rank},
          {"rms", matrix.rms},
          {"captured", matrix.captured}};
}

Attributes make_attributes(const DeltaTensor& tensor) {
  return {{"name", tensor.name},
          {"form", tensor.form},
          {"changed", tensor.changed},
          {"elements", tensor.elements},
          {"bytes", tensor.bytes}};
}

Attributes make_attributes(const ImatrixGap& gap) {
  Value::Array experts;
  for (const std::size_t expert : gap.experts) experts.emplace_back(std::uint64_t{expert});
  return {{"entry", gap.entry}, {"experts", std::move(experts)}, {"count", std::uint64_t{gap.count}}};
}

}  // namespace poise
