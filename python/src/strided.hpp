// Strided: which elements of a row-major array a slice takes, and how they are read without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise::python {

// Elements of a row-major array: of each dimension `shape` of them, `strides` elements apart (at least 1), from element
// `first` on.
struct Strided {
  std::uint64_t first = 0;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> strides;

  static Strided whole(const Shape& shape);

  std::uint64_t count() const;
  // Are the elements one after the other?
  bool is_run() const;
  // Elements from the first to the last one, both included; 0 for none.
  std::uint64_t extent() const;
};

// Copies the elements, of `width` bytes each, to `out`, in row-major order; of a blob that can seek about as many bytes
// are read as are wanted. Throws what reading the blob throws, and std::bad_alloc. Requires: the blob holds them; `out`
// has room. When `stopped` (which may be empty, and is asked on many threads) says so, it ends early, and what `out`
// has is chance.
void read_strided(const Blob& blob, std::uint64_t width, const Strided& elements, std::byte* out,
                  const std::function<bool()>& stopped = {});

}  // namespace poise::python
