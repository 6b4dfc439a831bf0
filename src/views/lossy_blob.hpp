// LossyBlob: computed bytes that say less than what they are computed from, and how much less.
#pragma once

#include <memory>

#include <poise/blob.hpp>

namespace poise {

// `Loss` adds up: CastStats, QuantizationError.
template <typename Loss>
class LossyBlob : public Blob {
 public:
  // Reads, and adds to `loss` (may be null) what is lost in the elements that these bytes belong to.
  virtual void read_measured(std::uint64_t offset, std::span<std::byte> out, Loss* loss) const = 0;

  void read(std::uint64_t offset, std::span<std::byte> out) const final { read_measured(offset, out, nullptr); }
};

}  // namespace poise
