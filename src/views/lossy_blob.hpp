// LossyBlob: computed bytes that lose information, and measure the loss.
#pragma once

#include <memory>

#include <poise/blob.hpp>

namespace poise {

// `Loss` can be added up: CastStats, QuantizationError.
template <typename Loss>
class LossyBlob : public Blob {
 public:
  // Reads, and adds to `loss` (may be null) the loss in the elements that these bytes belong to.
  virtual void read_measured(std::uint64_t offset, std::span<std::byte> out, Loss* loss) const = 0;

  void read(std::uint64_t offset, std::span<std::byte> out) const final { read_measured(offset, out, nullptr); }
};

}  // namespace poise
