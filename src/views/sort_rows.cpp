// Sorts the columns of compressed sparse rows into the order that zt.sparse_csr/1 requires.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "numeric/integers.hpp"
#include "views/loaded_blob.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

using Order = std::vector<std::uint64_t>;  // element i of the sorted tensor is element order[i] of the original

Order ascending_order(const Tensor& tensor) {
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

// The elements of a blob in another order.
class ReorderedBlob final : public Blob {
 public:
  ReorderedBlob(const BlobPtr& blob, std::shared_ptr<const Order> order, std::uint64_t width)
      : elements_(blob), order_(std::move(order)), width_(width) {}

  std::uint64_t size() const override { return order_->size() * width_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t skipped = offset % width_;
      const std::size_t count = std::min<std::size_t>(out.size(), width_ - skipped);
      const std::uint64_t from = (*order_)[offset / width_] * width_ + skipped;
      std::ranges::copy(elements_.bytes().subspan(from, count), out.begin());
      out = out.subspan(count);
      offset += count;
    }
  }

 private:
  LoadedBlob elements_;
  std::shared_ptr<const Order> order_;
  std::uint64_t width_;
};

}  // namespace

Tensor with_ascending_columns(const Tensor& tensor) {
  validate_sparse(tensor, sparse_rules(tensor));
  const auto order = std::make_shared<const Order>(ascending_order(tensor));
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
