// Declares blobs whose bytes are computed when they are read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>
#include <poise/tensor.hpp>

#include "bytes/little_endian.hpp"
#include "io/read_fully.hpp"
#include "numeric/integers.hpp"

namespace poise {

// Elements are computed in blocks of this many. The source, the float32 numbers and the codes of a block fit the
// first-level cache together. The number is even, so that in a read from the front each block of 4-bit codes begins at
// a whole byte.
inline constexpr std::size_t kBlockSize = 4096;

// Holds all bytes of a blob: borrows them, or copies them if they cannot be borrowed. Throws unsupported when a
// compressed blob would take more memory than its file justifies.
class LoadedBlob {
 public:
  explicit LoadedBlob(BlobPtr blob) : blob_(require_justified_size(std::move(blob))) {}

  std::span<const std::byte> bytes() const { return blob_.bytes(); }

  template <typename T>
  T at(std::uint64_t index) const {
    return load_le<T>(bytes().data() + index * sizeof(T));
  }
  // Returns an integer as an index. Requires: it is not negative.
  template <typename T>
  std::uint64_t index_at(std::uint64_t index) const {
    return static_cast<std::make_unsigned_t<T>>(at<T>(index));
  }
  // Returns the same for a type that is known only at run time.
  std::uint64_t index_at(DType type, std::uint64_t index) const {
    return visit_integer(type, [&](auto zero) { return index_at<decltype(zero)>(index); });
  }

 private:
  static BlobPtr require_justified_size(BlobPtr blob) {
    const auto at = blob->map() ? std::nullopt : blob->stored();
    if (!at || blob->size() <= compute_decoded_limit(at->length)) return blob;
    throw Error(
        ErrorKind::unsupported,
        fmt::format("{} bytes, which {} stored bytes decode to, are more than the {} that are kept in memory at once",
                    blob->size(), at->length, compute_decoded_limit(at->length)),
        at->source->name(), at->offset);
  }

  WholeBlob blob_;
};

// Copies bytes [offset, offset + out.size()) of a sequence of units (numbers or blocks) of `unit` bytes each.
// make(first, count) returns the bytes of `count` units from `first` on; count is at most `most`.
template <typename Make>
void read_units(std::uint64_t offset, std::span<std::byte> out, std::size_t unit, std::size_t most, const Make& make) {
  while (!out.empty()) {
    const auto skipped = static_cast<std::size_t>(offset % unit);
    const std::size_t count = std::min((skipped + out.size() + unit - 1) / unit, most);
    const std::span<const std::byte> made = make(offset / unit, count);
    const std::size_t copied = std::min(made.size() - skipped, out.size());
    std::copy_n(made.data() + skipped, copied, out.begin());
    offset += copied;
    out = out.subspan(copied);
  }
}

// Computes float32 numbers in blocks when they are read.
class FloatBlob : public Blob {
 public:
  // Requires: the bytes of `elements` numbers fit 64 bits.
  explicit FloatBlob(std::uint64_t elements) : elements_(elements) {}

  std::uint64_t size() const override { return elements_ * sizeof(float); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const bool is_last = offset + out.size() == size();
    std::array<float, kBlockSize> numbers;
    read_units(offset, out, sizeof(float), kBlockSize, [&](std::uint64_t first, std::size_t count) {
      compute_elements(first, std::span(numbers).first(count));
      return std::as_bytes(std::span(numbers).first(count));
    });
    if (is_last) drop_caches();
  }

 protected:
  // Computes the elements from `first` on, at most kBlockSize of them.
  virtual void compute_elements(std::uint64_t first, std::span<float> out) const = 0;
  // Drops caches. read() calls this when it has read the last element.
  virtual void drop_caches() const {}

 private:
  std::uint64_t elements_;
};

// Computes the elements of a tensor from `first` on, at most kBlockSize of them. `data` is the part that is read in
// order, `kept` has other parts in memory.
using ComputeElements =
    std::function<void(const Blob& data, std::span<const LoadedBlob> kept, std::uint64_t first, std::span<float> out)>;

// Returns elements as float32 numbers, which are computed when they are read. The bytes of `kept` stay in memory from
// the first read until the last element has been read. Requires: as FloatBlob.
BlobPtr make_float_blob(std::uint64_t elements, BlobPtr data, std::vector<BlobPtr> kept, ComputeElements compute);

// Computes bytes that lose information, and measures the loss. `Loss` can be added up: CastStats, QuantizationError.
template <typename Loss>
class LossyBlob : public Blob {
 public:
  // Reads as read() does, and adds the loss of the elements that these bytes belong to. `loss` may be null.
  virtual void read_measured(std::uint64_t offset, std::span<std::byte> out, Loss* loss) const = 0;

  void read(std::uint64_t offset, std::span<std::byte> out) const final { read_measured(offset, out, nullptr); }
};

template <typename Loss>
using LossyBlobPtr = std::shared_ptr<const LossyBlob<Loss>>;

// Returns true if a number of the part passes the test. Stops reading soon after the first such number. Requires:
// floating-point numbers of whole bytes.
bool has_number(const Part& part, bool (*is_wanted)(double));

// Returns the same numbers, with a check. Reading throws unsupported, "WHAT: element 7 is too large for f32", when a
// number is infinite although no floating-point number of the inputs is. The first infinite number causes a read of the
// inputs, up to their first infinity. Requires: `numbers` is float32; inputs of known types.
BlobPtr add_overflow_checks(std::string what, BlobPtr numbers, std::vector<Part> inputs);

// Returns the same tensor with values that are checked while they are read, so that no writer copies a fault that
// verify() reports. Reading throws invalid_file, naming tensor, part, element and place, for a boolean other than 0 and
// 1, and for a byte whose code does not fit four bits; and, naming no element, for an unused half of the last byte that
// is not zero. Parts that cannot have such faults stay as they are, so that writers can still copy their stored bytes.
Tensor add_value_checks(const Tensor& tensor);

// Returns true if add_value_checks() would check a part of the tensor.
bool needs_value_checks(const Tensor& tensor);

}  // namespace poise
