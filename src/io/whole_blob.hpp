// WholeBlob: all bytes of a blob, contiguous in memory.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <poise/blob.hpp>

namespace poise {

// For what is needed as a whole and stored compressed: indices, words of codes, files in archives.
inline constexpr std::uint64_t max_decoded_bytes(std::uint64_t stored_bytes) { return (16 << 20) + 16 * stored_bytes; }

// Borrows the bytes, or copies them where they cannot be borrowed. Throws what reading them throws.
class WholeBlob {
 public:
  explicit WholeBlob(BlobPtr blob) : blob_(std::move(blob)) {
    if (const auto all = blob_->map()) {
      bytes_ = *all;
    } else {
      copy_ = read_all(*blob_);
      bytes_ = copy_;
    }
  }
  WholeBlob(const WholeBlob&) = delete;
  WholeBlob& operator=(const WholeBlob&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  BlobPtr blob_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise
