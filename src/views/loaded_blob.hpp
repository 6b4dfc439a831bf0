// LoadedBlob: all bytes of a blob in memory, within what the size of its file justifies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "io/whole_blob.hpp"
#include "numeric/integers.hpp"

namespace poise {

// Borrows the bytes, or copies them where they cannot be borrowed. Throws unsupported when a compressed blob would take
// more memory than its file justifies.
class LoadedBlob {
 public:
  explicit LoadedBlob(BlobPtr blob) : blob_(justified(std::move(blob))) {}

  std::span<const std::byte> bytes() const { return blob_.bytes(); }

  template <typename T>
  T at(std::uint64_t index) const {
    return load_le<T>(bytes().data() + index * sizeof(T));
  }
  // Requires: the number is not negative.
  template <typename T>
  std::uint64_t index_at(std::uint64_t index) const {
    return static_cast<std::make_unsigned_t<T>>(at<T>(index));
  }
  // The same for a type known at run time.
  std::uint64_t index_at(DType type, std::uint64_t index) const {
    return visit_integer(type, [&](auto zero) { return index_at<decltype(zero)>(index); });
  }

 private:
  static BlobPtr justified(BlobPtr blob) {
    const auto at = blob->map() ? std::nullopt : blob->stored();
    if (!at || blob->size() <= max_decoded_bytes(at->length)) return blob;
    throw Error(
        ErrorKind::unsupported,
        fmt::format("{} bytes, which {} stored bytes decode to, are more than the {} that are kept in memory at once",
                    blob->size(), at->length, max_decoded_bytes(at->length)),
        at->source->name(), at->offset);
  }

  WholeBlob blob_;
};

}  // namespace poise
