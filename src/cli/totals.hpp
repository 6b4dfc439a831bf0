// Totals of tensors, elements and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <poise/tensor.hpp>

#include "bytes/checked.hpp"

namespace poise::cli {

// Nothing on overflow of 64 bits: sparse, compressed or shared parts may add up to that.
using Total = std::optional<std::uint64_t>;

inline Total plus(Total a, Total b) { return a && b ? checked_add(*a, *b) : std::nullopt; }

// Of all parts, decoded.
inline Total bytes_of(const Tensor& tensor) {
  Total sum = 0;
  for (const Part& part : tensor.parts) sum = plus(sum, part.blob->size());
  return sum;
}

struct Totals {
  std::size_t tensors = 0;
  Total elements = 0;
  Total bytes = 0;

  void add(const Tensor& tensor) { add({1, tensor.elements(), bytes_of(tensor)}); }
  void add(const Totals& others) {
    tensors += others.tensors;
    elements = plus(elements, others.elements);
    bytes = plus(bytes, others.bytes);
  }
};

}  // namespace poise::cli
