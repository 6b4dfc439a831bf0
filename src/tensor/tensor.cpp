#include <poise/tensor.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"

namespace poise {

std::optional<std::uint64_t> element_count(const Shape& shape) {
  // A zero makes the tensor empty, even if the other dimensions would overflow.
  if (std::ranges::find(shape, std::uint64_t{0}) != shape.end()) return 0;
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

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    const fmt::format_int number(shape[i]);
    text.append(number.data(), number.size());
  }
  return text += ']';
}

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

Layout layout_from_name(std::string_view name) {
  constexpr std::array kNamed = {Layout::dense, Layout::sparse_csr, Layout::sparse_coo, Layout::quantized_group};
  const auto* found = std::ranges::find_if(kNamed, [&](Layout layout) { return to_string(layout) == name; });
  return found == kNamed.end() ? Layout::other : *found;
}

const Part* Tensor::part(std::string_view role) const {
  const auto found = std::ranges::find(parts, role, &Part::role);
  return found == parts.end() ? nullptr : &*found;
}

const Part& Tensor::require(std::string_view role) const {
  if (const Part* found = part(role)) return *found;
  throw Error(ErrorKind::not_found, fmt::format("tensor {}: there is no part \"{}\"", name, role));
}

std::uint64_t Tensor::elements() const {
  const auto count = element_count(shape);
  if (!count)
    throw Error(ErrorKind::internal,
                fmt::format("tensor {}: the elements of shape {} overflow", name, to_string(shape)));
  return *count;
}

std::uint64_t Tensor::size_bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum = saturating_add(sum, part.blob->size());
  return sum;
}

std::string choose_spelling(DType dtype, std::string_view spelled) {
  return spelled == to_string(dtype) ? std::string() : std::string(spelled);
}

TensorLayout::TensorLayout(Layout plain) : kind_(plain) {
  if (plain != Layout::dense && plain != Layout::sparse_csr && plain != Layout::sparse_coo)
    throw Error(ErrorKind::internal, fmt::format("a layout {} without its scheme", to_string(plain)));
}

TensorLayout::TensorLayout(std::shared_ptr<const AffineSource> affine)
    : kind_(Layout::affine), scheme_(std::make_shared<const std::any>(std::move(affine))) {}

TensorLayout TensorLayout::with_scheme(std::string_view name, std::any scheme, Layout kind) {
  TensorLayout layout;
  layout.kind_ = kind;
  if (kind == Layout::other) layout.name_ = name;
  layout.scheme_ = std::make_shared<const std::any>(std::move(scheme));
  return layout;
}

TensorLayout TensorLayout::other(std::string name) {
  TensorLayout layout;
  layout.kind_ = Layout::other;
  layout.name_ = std::move(name);
  return layout;
}

std::string_view TensorLayout::name() const {
  return kind_ == Layout::other ? std::string_view(name_) : to_string(kind_);
}

const AffineSource* TensorLayout::affine() const {
  const auto* source = scheme<std::shared_ptr<const AffineSource>>();
  return source == nullptr ? nullptr : source->get();
}

Tensor make_dense(std::string name, Shape shape, DType dtype, BlobPtr data) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.parts.push_back({.role = "data", .dtype = dtype, .blob = std::move(data)});
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
