// Integers of a type that is only known at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <poise/blob.hpp>
#include <poise/dtype.hpp>
#include <poise/error.hpp>

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

// A blob's bytes in memory: borrowed, or copied where that is not possible.
class LoadedBlob {
 public:
  explicit LoadedBlob(BlobPtr blob) : blob_(std::move(blob)) {
    if (const auto all = blob_->map()) {
      bytes_ = *all;
    } else {
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
  BlobPtr blob_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise
