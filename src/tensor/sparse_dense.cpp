// From sparse to dense: zeros with the stored elements scattered over them, a piece at a time.
#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/kept.hpp"
#include "tensor/integers.hpp"
#include "tensor/sparse.hpp"

namespace poise {
namespace {

// Where a stored element lies: its cell in row-major numbering, and its place among the values.
struct Entry {
  std::uint64_t cell;
  std::uint64_t place;
};

// The elements of a validated tensor by cell.
class Entries {
 public:
  explicit Entries(const Tensor& tensor) : values_(tensor.require("values").blob) {
    validate_sparse(tensor, sparse_rules(tensor));
    if (tensor.layout == Layout::sparse_csr) {
      load_rows(tensor);
    } else {
      load_coordinates(tensor);
    }
    if (!std::ranges::is_sorted(entries_, {}, &Entry::cell)) std::ranges::sort(entries_, {}, &Entry::cell);
  }

  const std::byte* value(const Entry& entry, std::uint64_t width) const { return values_.bytes().data() + entry.place * width; }

  // Those with cells in [begin, end).
  std::span<const Entry> between(std::uint64_t begin, std::uint64_t end) const {
    const auto first = std::ranges::lower_bound(entries_, begin, {}, &Entry::cell);
    const auto last = std::ranges::lower_bound(entries_, end, {}, &Entry::cell);
    return {first, last};
  }

 private:
  void load_rows(const Tensor& tensor) {
    const Part& indices_part = tensor.require("indices");
    const LoadedBlob indices(indices_part.blob);
    const LoadedBlob indptr(tensor.require("indptr").blob);
    visit_integer(tensor.require("indptr").dtype, [&](auto pointer_zero) {
      using Pointer = decltype(pointer_zero);
      visit_integer(indices_part.dtype, [&](auto column_zero) {
        using Column = decltype(column_zero);
        for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
          const std::uint64_t end = indptr.index_at<Pointer>(row + 1);
          for (std::uint64_t i = indptr.index_at<Pointer>(row); i < end; ++i) {
            entries_.push_back({row * tensor.shape[1] + indices.index_at<Column>(i), i});
          }
        }
      });
    });
  }

  void load_coordinates(const Tensor& tensor) {
    const Part& part = tensor.require("coords");
    const LoadedBlob coords(part.blob);
    visit_integer(part.dtype, [&](auto zero) {
      using Coordinate = decltype(zero);
      const std::uint64_t count = coords.bytes().size() / sizeof(Coordinate) / tensor.shape.size();
      for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t cell = 0;
        for (std::size_t d = 0; d < tensor.shape.size(); ++d) cell = cell * tensor.shape[d] + coords.index_at<Coordinate>(d * count + i);
        entries_.push_back({cell, i});
      }
    });
  }

  LoadedBlob values_;
  std::vector<Entry> entries_;  // by cell
};

class DensifiedBlob final : public Blob {
 public:
  DensifiedBlob(const Tensor& tensor, std::uint64_t width) : tensor_(tensor), width_(width), size_(tensor.elements() * width) {}

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto entries = entries_.get([this] { return std::make_shared<const Entries>(tensor_); });
    std::ranges::fill(out, std::byte{0});
    const std::uint64_t end = offset + out.size();
    for (const Entry& entry : entries->between(offset / width_, (end + width_ - 1) / width_)) {
      const std::uint64_t begin_byte = std::max(entry.cell * width_, offset);
      const std::uint64_t end_byte = std::min(entry.cell * width_ + width_, end);
      std::copy_n(entries->value(entry, width_) + (begin_byte - entry.cell * width_), end_byte - begin_byte,
                  out.begin() + static_cast<std::ptrdiff_t>(begin_byte - offset));
    }
    if (end == size_) entries_.let_go();
  }

 private:
  Tensor tensor_;
  std::uint64_t width_;
  std::uint64_t size_;
  Kept<const Entries> entries_;
};

}  // namespace

BlobPtr densify(const Tensor& tensor) {
  const Part& values = tensor.require("values");
  if (values.dtype == DType::unknown || info(values.dtype).bits % 8 != 0) {
    throw Error(ErrorKind::unsupported, fmt::format("tensor {}: values of type {} cannot be made dense", tensor.name, values.dtype_name));
  }
  const auto bytes = packed_bytes(values.dtype, tensor.elements());
  if (!bytes) throw Error(ErrorKind::unsupported, fmt::format("tensor {}: shape {} is too large to be made dense", tensor.name, to_string(tensor.shape)));
  if (*bytes == 0) validate_sparse(tensor, sparse_rules(tensor));  // nobody will read it
  return std::make_shared<DensifiedBlob>(tensor, info(values.dtype).bits / 8);
}

}  // namespace poise
