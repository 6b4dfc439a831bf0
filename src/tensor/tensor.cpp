#include <poise/tensor.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"

namespace poise {

std::optional<std::uint64_t> element_count(const Shape& shape) {
  // A zero anywhere makes the tensor empty, whatever the other dimensions would multiply to.
  for (const std::uint64_t dimension : shape) {
    if (dimension == 0) return 0;
  }
  std::optional<std::uint64_t> count = 1;
  for (const std::uint64_t dimension : shape) {
    count = checked_mul(*count, dimension);
    if (!count) return std::nullopt;
  }
  return count;
}

std::optional<std::uint64_t> packed_bytes(DType dtype, std::uint64_t elements) {
  const unsigned bits = info(dtype).bits;
  if (bits % 8 == 0) return checked_mul(elements, bits / 8);
  const unsigned per_byte = 8 / bits;
  return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string_view to_string(Layout layout) {
  switch (layout) {
    case Layout::dense: return "dense";
    case Layout::sparse_csr: return "sparse_csr";
    case Layout::sparse_coo: return "sparse_coo";
    case Layout::quantized_group: return "quantized_group";
    case Layout::affine: return "affine";
    case Layout::other: return "other";
  }
  return "other";
}

const Part* Tensor::part(std::string_view role) const {
  for (const Part& part : parts) {
    if (part.role == role) return &part;
  }
  return nullptr;
}

const Part& Tensor::require(std::string_view role) const {
  if (const Part* found = part(role)) return *found;
  throw Error(ErrorKind::not_found, fmt::format("tensor {}: there is no part \"{}\"", name, role));
}

std::uint64_t Tensor::elements() const {
  const auto count = element_count(shape);
  if (!count) throw Error(ErrorKind::internal, fmt::format("tensor {}: the elements of shape {} overflow", name, to_string(shape)));
  return *count;
}

std::uint64_t Tensor::size_bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum = saturating_add(sum, part.blob->size());
  return sum;
}

Tensor make_dense(std::string name, Shape shape, DType dtype, BlobPtr data) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.parts.push_back({.role = "data", .dtype = dtype, .dtype_name = std::string(to_string(dtype)), .blob = std::move(data), .digest = {}});
  return tensor;
}

namespace {

class KnownAffine final : public AffineSource {
 public:
  KnownAffine(Affine affine, std::optional<std::uint64_t> position) : affine_(affine), position_(position) {}
  Affine get() const override { return affine_; }
  std::optional<std::uint64_t> position() const override { return position_; }

 private:
  Affine affine_;
  std::optional<std::uint64_t> position_;
};

}  // namespace

std::shared_ptr<const AffineSource> make_affine(Affine affine, std::optional<std::uint64_t> position) {
  return std::make_shared<KnownAffine>(affine, position);
}

}  // namespace poise
