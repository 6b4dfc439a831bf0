// Integers of a type that is only known at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/dtype.hpp>
#include <poise/error.hpp>

#include "bytes/limits.hpp"
#include "bytes/little_endian.hpp"

namespace poise {

// Calls `use` with an integer of the type: visit_integer(DType::u16, [](auto zero) { using T = decltype(zero); ... }).
// Requires: an integer type.
template <typename Use>
decltype(auto) visit_integer(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::i64: return use(std::int64_t{});
    case DType::i32: return use(std::int32_t{});
    case DType::i16: return use(std::int16_t{});
    case DType::i8: return use(std::int8_t{});
    case DType::u64: return use(std::uint64_t{});
    case DType::u32: return use(std::uint32_t{});
    case DType::u16: return use(std::uint16_t{});
    case DType::u8: return use(std::uint8_t{});
    default: throw Error(ErrorKind::internal, "an integer type was expected");
  }
}

// A blob's bytes in memory: borrowed, or copied where that is not possible. Throws unsupported where a compressed blob would take
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
    const auto at = blob_->location();
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
