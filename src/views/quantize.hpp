// quantize: floating-point tensors as codes with one scale per tensor, computed chunk by chunk when they are read.
#pragma once

#include <memory>
#include <mutex>

#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Collects what quantizing a tensor did to the values that have been read so far; safe to use from many threads.
class QuantizationReport {
 public:
  void add(const QuantizationError& error);
  QuantizationError total() const;

 private:
  mutable std::mutex mutex_;
  QuantizationError error_;
};

// The same elements as an affine tensor, whose qint4 codes are packed, or as one of groups. Nothing is computed now: the first to ask for the scale
// or a byte makes one pass over the elements to find the scale. That throws unsupported, naming tensor and index, when an
// element is infinite or NaN. `report` (may be null) learns what reading the codes lost.
// Requires: has_float_elements(tensor) and type.quantized().
Tensor quantize(const Tensor& tensor, const StoredType& type, std::shared_ptr<QuantizationReport> report);

}  // namespace poise
