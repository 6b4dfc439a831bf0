// Strided: the elements that a slice selects from a row-major array, and read_strided(), which copies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise::python {

// Selects elements of a row-major array, from element `first` on. In dimension i it selects shape[i] elements, each
// strides[i] >= 1 elements of the array after the one before.
struct Strided {
  std::uint64_t first = 0;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> strides;

  // Selects all elements.
  static Strided make_whole(const Shape& shape);

  // Returns the number of selected elements.
  std::uint64_t count() const;
  bool is_contiguous() const;
  // Returns the number of elements from the first to the last one, both included; 0 if there are none.
  std::uint64_t extent() const;
};

// Copies the elements, of `width` bytes each, to `out`, in row-major order. Reads short runs of elements
// together with the bytes between them. Many threads may call `stopped`, unless it is empty; when it returns true,
// read_strided() ends early, and the contents of `out` are undefined. Throws what reading the blob throws, and
// std::bad_alloc. Requires: the blob has the elements; `out` has space.
void read_strided(const Blob& blob, std::uint64_t width, const Strided& elements, std::byte* out,
                  const std::function<bool()>& stopped = {});

}  // namespace poise::python
