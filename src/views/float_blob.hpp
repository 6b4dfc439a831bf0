// FloatBlob: float32 numbers, computed in blocks when read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <poise/blob.hpp>

#include "views/block_size.hpp"

namespace poise {

class FloatBlob : public Blob {
 public:
  // Requires: the bytes of `elements` numbers fit 64 bits.
  explicit FloatBlob(std::uint64_t elements) : elements_(elements) {}

  std::uint64_t size() const override { return elements_ * sizeof(float); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const bool is_last = offset + out.size() == size();
    std::array<float, kBlockSize> numbers;
    while (!out.empty()) {
      const std::uint64_t element = offset / sizeof(float);
      const auto skipped = static_cast<std::size_t>(offset % sizeof(float));
      const std::size_t count = std::min((skipped + out.size() + sizeof(float) - 1) / sizeof(float), kBlockSize);
      make(element, std::span(numbers).first(count));
      const auto made = std::as_bytes(std::span<const float>(numbers).first(count)).subspan(skipped);
      const std::size_t copied = std::min(made.size(), out.size());
      std::copy_n(made.begin(), copied, out.begin());
      offset += copied;
      out = out.subspan(copied);
    }
    if (is_last) finish();
  }

 protected:
  // Computes the elements from `first` on, at most kBlockSize of them.
  virtual void make(std::uint64_t first, std::span<float> out) const = 0;
  // The last element has been read: caches may be dropped.
  virtual void finish() const {}

 private:
  std::uint64_t elements_;
};

}  // namespace poise
