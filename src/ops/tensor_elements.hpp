// TensorElements reads the elements of a tensor as numbers, a block at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Reads elements as float32 numbers, or as float64 numbers if float32 cannot hold all of them.
class TensorElements {
 public:
  // Returns false for complex numbers, and for types and layouts that Poise cannot decode. Requires: not sparse.
  static bool has_numbers(const Tensor& tensor) { return find_kind(tensor) != Kind::none; }

  // Requires: has_numbers(tensor), and the tensor is not sparse.
  explicit TensorElements(const Tensor& tensor);

  bool needs_float64() const { return kind_ == Kind::doubles || kind_ == Kind::integers; }
  bool is_seekable() const { return blob_->seekable(); }
  // Returns the smallest normal number of the type in which dense elements are stored, or of float32 for others. 0: the
  // type has no subnormal numbers.
  double smallest_normal() const { return smallest_normal_; }
  // Returns a stream of the elements; null if is_seekable().
  std::unique_ptr<BlobStream> stream() const { return is_seekable() ? nullptr : blob_->stream(); }

  // Reads elements from `first` on or, if `stream` is not null, its next elements. `buffer` is the caller's memory for
  // stored bytes. Throws what reading the blob throws. Requires: `out` is float64 if and only if needs_float64().
  void read(BlobStream* stream, std::uint64_t first, std::span<float> out, std::vector<std::byte>& buffer) const;
  void read(BlobStream* stream, std::uint64_t first, std::span<double> out, std::vector<std::byte>& buffer) const;

  // Returns the bytes of mapped elements that summarize_stored_numbers() accepts; no bytes for others.
  std::span<const std::byte> find_stored_bytes(std::uint64_t first, std::size_t count) const {
    return stored_.empty() ? stored_ : stored_.subspan(first * kStoredBytes, count * kStoredBytes);
  }
  static constexpr std::size_t kStoredBytes = 2;  // bytes of an f16 or bf16 element
  float decode(std::span<const std::byte> stored) const;
  DType dtype() const { return dtype_; }

 private:
  enum class Kind : std::uint8_t { none, floats, small_integers, doubles, integers };
  static Kind find_kind(const Tensor& tensor);
  template <typename Number>
  void read_as(BlobStream* stream, std::uint64_t first, std::span<Number> out, std::vector<std::byte>& buffer) const;

  Kind kind_;
  DType dtype_;
  BlobPtr blob_;
  std::span<const std::byte> stored_ = {};
  double smallest_normal_ = 0;
};

}  // namespace poise
