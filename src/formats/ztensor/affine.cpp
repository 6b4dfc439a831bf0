#include "formats/ztensor/affine.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "syntax/element_value.hpp"
#include "tensor/part_types.hpp"

namespace poise::ztensor {
namespace {

[[noreturn]] void fail_affine(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file,
              fmt::format("tensor {}: attribute {}: {}", tensor.name, kAffineAttribute, problem));
}

float read_finite_number(const Tensor& tensor, const Attributes& map, std::string_view key) {
  const Value* value = map.find(key);
  constexpr double kMost = std::numeric_limits<float>::max();
  if (const auto found = convert_to_double(value); found && std::abs(*found) <= kMost)
    return static_cast<float>(*found);
  fail_affine(tensor, fmt::format("{}: expected a finite number of float32, found {}", key, format_found_value(value)));
}

Affine read_scale(const Tensor& tensor, const Attributes& map, bool packed) {
  const Affine affine{read_finite_number(tensor, map, "delta"), read_finite_number(tensor, map, "min"),
                      read_finite_number(tensor, map, "max"), packed};
  if (affine.delta < 0) fail_affine(tensor, fmt::format("delta: expected 0 or more, found {}", affine.delta));
  if (affine.min > affine.max)
    fail_affine(tensor, fmt::format("min: expected at most max ({}), found {}", affine.max, affine.min));
  return affine;
}

}  // namespace

Tensor set_longest_scale(Tensor tensor) {
  if (const AffineSource* affine = tensor.layout.affine())
    tensor.layout = make_affine({.delta = 0.1F, .min = -0.1F, .max = 0.1F, .packed = affine->packed()});
  return tensor;
}

Tensor convert_to_stored_affine(const Tensor& tensor) {
  const Affine affine = tensor.layout.affine()->get();
  Part data = tensor.require("data");
  const bool packed = data.dtype == DType::qint4 && affine.packed;
  Tensor stored;
  stored.name = tensor.name;
  stored.shape = tensor.shape;
  if (packed) stored.layout = TensorLayout::other(std::string(kAffineLayout));
  stored.attributes = tensor.attributes;
  Attributes map{{"bits", data.dtype == DType::qint4 ? 4 : 8},
                 {"delta", static_cast<double>(affine.delta)},
                 {"min", static_cast<double>(affine.min)},
                 {"max", static_cast<double>(affine.max)}};
  read_scale(stored, map, packed);  // throws what a reader would throw
  stored.attributes.set(std::string(kAffineAttribute), std::move(map));
  data.dtype = packed || affine.ranged() ? DType::u8 : DType::i8;
  data.spelling.clear();
  stored.parts.push_back(std::move(data));
  return stored;
}

void convert_from_stored_affine(Tensor& tensor) {
  const Value* value = tensor.attributes.find(kAffineAttribute);
  const bool packed = tensor.layout.name() == kAffineLayout;
  if (value == nullptr && packed) fail_affine(tensor, "it is missing");
  if (value == nullptr || (tensor.layout != Layout::dense && !packed)) return;
  const auto* map = value->get_if<Attributes>();
  if (map == nullptr) fail_affine(tensor, fmt::format("expected a map, found {}", format_found_value(value)));
  const float bits = read_finite_number(tensor, *map, "bits");
  if (bits != 8.0F && bits != 4.0F) fail_affine(tensor, fmt::format("bits: expected 8 or 4, found {}", bits));
  if (packed && bits != 4.0F) fail_affine(tensor, "bits: expected 4 for packed codes, found 8");
  const Affine affine = read_scale(tensor, *map, packed);
  if (tensor.parts.size() != 1 || tensor.parts[0].role != "data")
    fail_affine(tensor, "expected a single part, \"data\"");
  Part& data = tensor.parts[0];
  const DType expected = packed || affine.ranged() ? DType::u8 : DType::i8;
  if (data.dtype != expected)
    fail_affine(tensor, fmt::format("the codes are {}, expected {}", data.type_name(), to_string(expected)));
  data.dtype = bits == 8.0F ? DType::qint8 : DType::qint4;
  const std::uint64_t bytes =
      packed ? packed_bytes(DType::qint4, tensor.elements()).value_or(UINT64_MAX) : tensor.elements();
  if (data.blob->size() != bytes)
    fail_affine(tensor, fmt::format("the codes take {} bytes, shape {} needs {}", data.blob->size(),
                                    to_string(tensor.shape), bytes));
  tensor.layout = make_affine(affine);
  tensor.attributes.erase(kAffineAttribute);
}

}  // namespace poise::ztensor
