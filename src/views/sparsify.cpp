// Converts dense tensors to sparse ones. One pass counts the nonzero elements of each block of 16,384 elements. Each
// read of values or indices finds the nonzero elements again, in the blocks that it needs. Sorts the columns of sparse
// rows.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "numeric/integers.hpp"
#include "pack/pump.hpp"
#include "views/computed_blob.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kBlockElements = 16384;

bool is_zero(std::span<const std::byte> element) {
  return std::ranges::all_of(element, [](std::byte byte) { return byte == std::byte{0}; });
}

// Finds the nonzero elements of a dense tensor, numbered in row-major order.
class Nonzeros {
 public:
  explicit Nonzeros(const Tensor& dense)
      : shape_(dense.shape), width_(info(dense.require("data").dtype).bits / 8), data_(dense.require("data").blob) {
    if (!data_->map() && !data_->seekable()) data_ = make_memory_blob(read_all(*data_), dense.name);
    count_nonzeros();
  }

  std::uint64_t count() const { return before_block_.back(); }
  std::uint64_t width() const { return width_; }
  const Shape& shape() const { return shape_; }

  // Calls `use` with the cell and the bytes of each nonzero in [first, first + count).
  void visit(std::uint64_t first, std::uint64_t count,
             const std::function<void(std::uint64_t, std::span<const std::byte>)>& use) const {
    auto block = static_cast<std::uint64_t>(std::ranges::upper_bound(before_block_, first) - before_block_.begin() - 1);
    std::uint64_t number = before_block_[block];
    std::vector<std::byte> bytes;
    for (; number < first + count; ++block) {
      const std::uint64_t begin = block * kBlockElements * width_;
      bytes.resize(static_cast<std::size_t>(std::min(kBlockElements * width_, data_->size() - begin)));
      data_->read(begin, bytes);
      for (std::uint64_t i = 0; i < bytes.size() / width_ && number < first + count; ++i) {
        const auto element = std::span<const std::byte>(bytes).subspan(i * width_, width_);
        if (is_zero(element)) continue;
        if (number >= first) use(block * kBlockElements + i, element);
        ++number;
      }
    }
  }

  // Returns, as u64, the index of the first nonzero of each row, and then the number of all nonzeros.
  std::vector<std::byte> make_row_pointers() const {
    std::vector<std::byte> bytes((shape_[0] + 1) * sizeof(std::uint64_t));
    std::uint64_t row = 0;
    std::uint64_t number = 0;
    visit(0, count(), [&](std::uint64_t cell, std::span<const std::byte>) {
      for (; row < cell / shape_[1]; ++row) store_le(&bytes[(row + 1) * sizeof number], number);
      ++number;
    });
    for (; row < shape_[0]; ++row) store_le(&bytes[(row + 1) * sizeof number], number);
    return bytes;
  }

 private:
  void count_nonzeros() {
    std::vector<std::byte> cut;  // an element that spans two chunks
    before_block_ = {0};
    std::uint64_t nonzero = 0;
    std::uint64_t elements = 0;
    const auto count_element = [&](std::span<const std::byte> element) {
      if (!is_zero(element)) ++nonzero;
      if (++elements % kBlockElements == 0) before_block_.push_back(nonzero);
    };
    stream_chunks(*data_, [&](std::span<const std::byte> chunk) {
      if (!cut.empty()) {
        const std::size_t missing = std::min<std::size_t>(width_ - cut.size(), chunk.size());
        cut.insert(cut.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(missing));
        chunk = chunk.subspan(missing);
        if (cut.size() < width_) return;
        count_element(cut);
        cut.clear();
      }
      for (; chunk.size() >= width_; chunk = chunk.subspan(width_)) count_element(chunk.first(width_));
      cut.assign(chunk.begin(), chunk.end());
    });
    if (elements % kBlockElements != 0 || elements == 0) before_block_.push_back(nonzero);
  }

  Shape shape_;
  std::uint64_t width_;
  BlobPtr data_;
  std::vector<std::uint64_t> before_block_;  // the number of nonzero elements before each block, and the total
};

// Makes `repeats` lists, one after the other. Each has an item of fixed size for each nonzero element.
class NonzeroBlob : public Blob {
 public:
  NonzeroBlob(std::shared_ptr<const Nonzeros> nonzeros, std::uint64_t item_bytes, std::uint64_t repeats)
      : nonzeros_(std::move(nonzeros)), item_bytes_(item_bytes), repeats_(repeats) {}

  std::uint64_t size() const override { return nonzeros_->count() * item_bytes_ * repeats_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> items;
    while (!out.empty()) {
      const std::uint64_t item = offset / item_bytes_;
      const std::uint64_t repeat = item / nonzeros_->count();
      const std::uint64_t first = item % nonzeros_->count();
      const std::uint64_t last_item = (offset + out.size() - 1) / item_bytes_;
      const std::uint64_t count = std::min(last_item - item + 1, nonzeros_->count() - first);
      items.resize(static_cast<std::size_t>(count * item_bytes_));
      std::byte* to = items.data();
      nonzeros_->visit(first, count, [&](std::uint64_t cell, std::span<const std::byte> element) {
        write_item(repeat, cell, element, to);
        to += item_bytes_;
      });
      const std::uint64_t skip = offset % item_bytes_;
      const std::size_t copied = static_cast<std::size_t>(std::min<std::uint64_t>(items.size() - skip, out.size()));
      std::copy_n(items.begin() + static_cast<std::ptrdiff_t>(skip), copied, out.begin());
      out = out.subspan(copied);
      offset += copied;
    }
  }

 protected:
  const Nonzeros& nonzeros() const { return *nonzeros_; }
  virtual void write_item(std::uint64_t repeat, std::uint64_t cell, std::span<const std::byte> element,
                          std::byte* to) const = 0;

 private:
  std::shared_ptr<const Nonzeros> nonzeros_;
  std::uint64_t item_bytes_;
  std::uint64_t repeats_;
};

class ValuesBlob final : public NonzeroBlob {
 public:
  explicit ValuesBlob(const std::shared_ptr<const Nonzeros>& nonzeros) : NonzeroBlob(nonzeros, nonzeros->width(), 1) {}

 protected:
  void write_item(std::uint64_t, std::uint64_t, std::span<const std::byte> element, std::byte* to) const override {
    std::ranges::copy(element, to);
  }
};

// Makes the coordinates in the dimensions from `first` on, dimension by dimension.
class CoordinatesBlob final : public NonzeroBlob {
 public:
  CoordinatesBlob(const std::shared_ptr<const Nonzeros>& nonzeros, std::size_t first)
      : NonzeroBlob(nonzeros, sizeof(std::uint64_t), nonzeros->shape().size() - first),
        first_(first),
        strides_(nonzeros->shape().size(), 1) {
    for (std::size_t d = strides_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * nonzeros->shape()[d];
  }

 protected:
  void write_item(std::uint64_t repeat, std::uint64_t cell, std::span<const std::byte>, std::byte* to) const override {
    const std::size_t d = first_ + repeat;
    store_le(to, cell / strides_[d] % nonzeros().shape()[d]);
  }

 private:
  std::size_t first_;
  std::vector<std::uint64_t> strides_;
};

Part make_index_part(std::string role, BlobPtr blob) {
  return {.role = std::move(role), .dtype = DType::u64, .blob = std::move(blob)};
}

using Order = std::vector<std::uint64_t>;  // element i of the sorted tensor is element order[i] of the original

// Returns the order in which the columns of every row ascend, as zt.sparse_csr/1 requires.
Order find_ascending_order(const Tensor& tensor) {
  const Part& indices_part = tensor.require("indices");
  const Part& indptr_part = tensor.require("indptr");
  const LoadedBlob indices(indices_part.blob);
  const LoadedBlob indptr(indptr_part.blob);
  Order order(indices.bytes().size() / (info(indices_part.dtype).bits / 8));
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  visit_integer(indices_part.dtype, [&](auto zero) {
    const auto column = [&](std::uint64_t element) { return indices.at<decltype(zero)>(element); };
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      const auto at = [&](std::uint64_t pointer) {
        return order.begin() + static_cast<std::ptrdiff_t>(indptr.index_at(indptr_part.dtype, pointer));
      };
      if (!std::ranges::is_sorted(at(row), at(row + 1), {}, column))
        std::ranges::sort(at(row), at(row + 1), {}, column);
    }
  });
  return order;
}

// Reorders the elements of a blob, which it keeps in memory unless they are mapped.
class ReorderedBlob final : public Blob {
 public:
  ReorderedBlob(const BlobPtr& blob, std::shared_ptr<const Order> order, std::uint64_t width)
      : elements_(blob), order_(std::move(order)), width_(width) {}

  std::uint64_t size() const override { return order_->size() * width_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_units(offset, out, width_, 1, [&](std::uint64_t element, std::size_t) {
      return elements_.bytes().subspan((*order_)[element] * width_, width_);
    });
  }

 private:
  LoadedBlob elements_;
  std::shared_ptr<const Order> order_;
  std::uint64_t width_;
};

}  // namespace

bool may_become_sparse(const Tensor& dense, Layout layout) {
  const Part& data = dense.require("data");
  if (data.dtype == DType::unknown || info(data.dtype).bits % 8 != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: elements of type {} cannot be made sparse", dense.name, data.type_name()));
  }
  if (data.dtype == DType::f8_e8m0) return false;  // powers of two are never zero
  return !dense.shape.empty() && (layout != Layout::sparse_csr || dense.shape.size() == 2) && dense.elements() != 0;
}

std::optional<Tensor> sparsify(const Tensor& dense, Layout layout, double least_zeros) {
  if (!may_become_sparse(dense, layout)) return std::nullopt;
  const Part& data = dense.require("data");
  const std::uint64_t elements = dense.elements();
  const auto nonzeros = std::make_shared<const Nonzeros>(dense);
  if (static_cast<double>(elements - nonzeros->count()) < least_zeros * static_cast<double>(elements))
    return std::nullopt;
  Tensor sparse;
  sparse.name = dense.name;
  sparse.shape = dense.shape;
  sparse.layout = layout;
  sparse.attributes = dense.attributes;
  sparse.parts.push_back({.role = "values",
                          .dtype = data.dtype,
                          .spelling = data.spelling,
                          .blob = std::make_shared<ValuesBlob>(nonzeros)});
  if (layout == Layout::sparse_csr) {
    sparse.parts.push_back(make_index_part("indices", std::make_shared<CoordinatesBlob>(nonzeros, 1)));
    sparse.parts.push_back(make_index_part("indptr", make_memory_blob(nonzeros->make_row_pointers(), dense.name)));
  } else {
    sparse.parts.push_back(make_index_part("coords", std::make_shared<CoordinatesBlob>(nonzeros, 0)));
  }
  return sparse;
}

Tensor sort_sparse_columns(const Tensor& tensor) {
  validate_sparse(tensor, get_sparse_rules(tensor));
  const auto order = std::make_shared<const Order>(find_ascending_order(tensor));
  if (std::ranges::is_sorted(*order)) return tensor;
  Tensor sorted = tensor;
  for (Part& part : sorted.parts) {
    if (part.role == "indptr") continue;
    if (part.dtype == DType::unknown || info(part.dtype).bits % 8 != 0) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("tensor {}: {} of type {} cannot be sorted", tensor.name, part.role, part.type_name()));
    }
    part.blob = std::make_shared<ReorderedBlob>(part.blob, order, info(part.dtype).bits / 8);
    part.digest.reset();
  }
  return sorted;
}

}  // namespace poise
