// LoadedBlob: a blob's bytes in memory as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

#include "bytes/little_endian.hpp"

namespace poise {

// What has to be in memory as a whole, and is stored compressed: indices, and words of codes.
inline constexpr std::uint64_t max_decoded_bytes(std::uint64_t stored_bytes) { return (16 << 20) + 16 * stored_bytes; }

// Borrows the bytes, or copies them where that is not possible. Throws unsupported where a compressed blob would take
// more memory than its file justifies.
class LoadedBlob {
 public:
  explicit LoadedBlob(BlobPtr blob) : blob_(std::move(blob)) {
    if (const auto all = blob_->map()) {
      bytes_ = *all;
    } else {
      require_justified();
      copy_ = read_all(*blob_);
      bytes_ = copy_;
    }
  }
  LoadedBlob(const LoadedBlob&) = delete;
  LoadedBlob& operator=(const LoadedBlob&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  template <typename T>
  T at(std::uint64_t index) const {
    return load_le<T>(bytes_.data() + index * sizeof(T));
  }
  // Requires: the number is not negative.
  template <typename T>
  std::uint64_t index_at(std::uint64_t index) const {
    return static_cast<std::make_unsigned_t<T>>(at<T>(index));
  }

 private:
  void require_justified() const {
    const auto at = blob_->stored();
    if (!at || blob_->size() <= max_decoded_bytes(at->length)) return;
    throw Error(ErrorKind::unsupported,
                fmt::format("{} bytes, which {} stored bytes decode to, are more than the {} that are kept in memory at once", blob_->size(), at->length,
                            max_decoded_bytes(at->length)),
                at->source->name(), at->offset);
  }

  BlobPtr blob_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise
