// From sparse to dense: zeros and the stored elements, a piece at a time.
#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/lazy_value.hpp"
#include "numeric/integers.hpp"
#include "views/loaded_blob.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

// The elements of a validated tensor, by cell.
class Entries {
 public:
  explicit Entries(const Tensor& tensor) : values_(tensor.require("values").blob), entries_(sparse_entries(tensor)) {}

  const std::byte* value(const SparseEntry& entry, std::uint64_t width) const {
    return values_.bytes().data() + entry.place * width;
  }

  // Those with cells in [begin, end).
  std::span<const SparseEntry> between(std::uint64_t begin, std::uint64_t end) const {
    const auto first = std::ranges::lower_bound(entries_, begin, {}, &SparseEntry::cell);
    const auto last = std::ranges::lower_bound(entries_, end, {}, &SparseEntry::cell);
    return {first, last};
  }

 private:
  LoadedBlob values_;
  std::vector<SparseEntry> entries_;
};

class DensifiedBlob final : public Blob {
 public:
  DensifiedBlob(const Tensor& tensor, std::uint64_t width)
      : tensor_(tensor), width_(width), size_(tensor.elements() * width) {}

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto entries = entries_.get([this] { return std::make_shared<const Entries>(tensor_); });
    std::ranges::fill(out, std::byte{0});
    const std::uint64_t end = offset + out.size();
    for (const SparseEntry& entry : entries->between(offset / width_, (end + width_ - 1) / width_)) {
      const std::uint64_t begin_byte = std::max(entry.cell * width_, offset);
      const std::uint64_t end_byte = std::min(entry.cell * width_ + width_, end);
      std::copy_n(entries->value(entry, width_) + (begin_byte - entry.cell * width_), end_byte - begin_byte,
                  out.begin() + static_cast<std::ptrdiff_t>(begin_byte - offset));
    }
    if (end == size_) entries_.release();
  }

 private:
  Tensor tensor_;
  std::uint64_t width_;
  std::uint64_t size_;
  LazyValue<const Entries> entries_;
};

}  // namespace

BlobPtr densify(const Tensor& tensor) {
  const Part& values = tensor.require("values");
  if (values.dtype == DType::unknown || info(values.dtype).bits % 8 != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: values of type {} cannot be made dense", tensor.name, values.type_name()));
  }
  const auto bytes = packed_bytes(values.dtype, tensor.elements());
  if (!bytes)
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: shape {} is too large to be made dense", tensor.name, to_string(tensor.shape)));
  if (*bytes == 0) validate_sparse(tensor, sparse_rules(tensor));  // no later read would check it
  return std::make_shared<DensifiedBlob>(tensor, info(values.dtype).bits / 8);
}

}  // namespace poise
