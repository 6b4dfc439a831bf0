// Quantized tensors: value = (code - zero) * scale, codes of 8 bits.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/pickle_globals.hpp"
#include "formats/pytorch/tensor_builder.hpp"
#include "tensor/group_attributes.hpp"
#include "tensor/group_scheme.hpp"
#include "views/flipped_signs.hpp"
#include "views/raised_integers.hpp"
#include "views/strided.hpp"

namespace poise::pytorch {

using pickle::Id;
using pickle::Kind;

namespace {

constexpr std::int64_t kSignedZero = 128;  // of signed codes that are stored without a sign

}  // namespace

Tensor TensorBuilder::quantized(std::string name, const Making& making) {
  require_arguments(making, 5);
  const View view = view_of(making);
  const std::string type = storage_of(view).type;
  const bool is_signed = type == "torch.QInt8Storage";
  if (!is_signed && type != "torch.QUInt8Storage")
    fail(view.storage, ErrorKind::unsupported,
         fmt::format("quantized tensors of {} are not read: in Python, save x.dequantize()", type));
  const Id parameters = making.arguments[4];
  if (pickle_.kind(parameters) != Kind::tuple || pickle_.items(parameters).empty())
    fail(parameters, ErrorKind::invalid_file, "quantizer_params: expected a tuple");
  const std::span<const Id> parts = pickle_.items(parameters);
  const std::string scheme = pickle_.kind(parts[0]) == Kind::global ? full_name(pickle_.global(parts[0])) : "";
  const bool per_tensor = scheme == "torch.per_tensor_affine";
  if (!per_tensor && scheme != "torch.per_channel_affine")
    fail(parameters, ErrorKind::unsupported,
         fmt::format("quantized tensors of the scheme \"{}\" are not read: in Python, save x.dequantize()", scheme));
  if (parts.size() < (per_tensor ? 3 : 4))
    fail(parameters, ErrorKind::invalid_file,
         per_tensor ? "quantizer_params: expected a scale and a zero point"
                    : "quantizer_params: expected scales, zero points and an axis");
  if (view.shape.empty())
    fail(making.id, ErrorKind::unsupported, "quantized scalars are not read: in Python, save x.dequantize()");
  Tensor tensor = dense(std::move(name), view);
  const BlobPtr codes = tensor.parts[0].blob;
  tensor.parts.clear();
  tensor.parts.push_back({.role = "packed_weight",
                          .dtype = DType::u8,
                          .blob = is_signed ? BlobPtr(make_flipped_signs_blob(codes)) : codes});
  const Quantizer quantizer{parts.subspan(1), is_signed ? kSignedZero : 0};
  if (per_tensor) {
    add_scale(tensor, quantizer);
  } else {
    add_scales(tensor, quantizer);
  }
  tensor.layout = group_layout(read_group_scheme(tensor, GroupWords::zt2));
  return tensor;
}

// One for all: a group is a row, and the rows' scales are one number.
void TensorBuilder::add_scale(Tensor& tensor, const Quantizer& quantizer) {
  const std::uint64_t row = tensor.shape.back();
  const std::uint64_t rows = row == 0 ? 0 : tensor.elements() / row;
  ByteWriter scale;
  scale.f32(scale_of(quantizer.parameters[0]));
  const BlobPtr one = make_memory_blob({scale.bytes().begin(), scale.bytes().end()}, path_);
  tensor.parts.push_back(
      {.role = "scales",
       .dtype = DType::f32,
       .blob = make_strided_blob(one, {.shape = {rows}, .strides = {0}, .item_bytes = sizeof(float)})});
  tensor.attributes = byte_code_attributes(std::max<std::uint64_t>(1, row), tensor.shape.size() - 1,
                                           zero_of(quantizer.parameters[1]) + quantizer.zero);
}

// One for each index along an axis. Those of a matrix's rows are groups along the rows, which more programs read.
void TensorBuilder::add_scales(Tensor& tensor, const Quantizer& quantizer) {
  const std::uint64_t axis = natural(quantizer.parameters[2], "axis");
  if (axis >= tensor.shape.size())
    fail(quantizer.parameters[2], ErrorKind::invalid_file,
         fmt::format("axis: {}, the shape is {}", axis, to_string(tensor.shape)));
  const auto numbers = [&](std::string_view field, Id id) {
    const Tensor part = dense_part(std::string(field), id);
    if (part.shape != Shape{tensor.shape[axis]})
      fail(id, ErrorKind::invalid_file,
           fmt::format("{}: expected the shape [{}], found {}", field, tensor.shape[axis], to_string(part.shape)));
    return part.parts[0];
  };
  const Part scales = numbers("scales", quantizer.parameters[0]);
  if (scales.dtype != DType::f32 && scales.dtype != DType::f64)
    fail(quantizer.parameters[0], ErrorKind::unsupported,
         fmt::format("scales: expected f32 or f64, found {}", to_string(scales.dtype)));
  const Part zeros = numbers("zero_points", quantizer.parameters[1]);
  const bool is_integer = zeros.dtype == DType::i64;
  if (!is_integer && (zeros.dtype != DType::f32 || quantizer.zero != 0))
    fail(quantizer.parameters[1], ErrorKind::unsupported,
         fmt::format("zero_points: {} with codes that are {} is not read: in Python, save x.dequantize()",
                     to_string(zeros.dtype), quantizer.zero == 0 ? "unsigned" : "signed"));
  tensor.parts.push_back({.role = "scales", .dtype = scales.dtype, .blob = scales.blob});
  tensor.parts.push_back(
      {.role = "zeros",
       .dtype = zeros.dtype,
       .blob = is_integer ? BlobPtr(make_raised_integers_blob(zeros.blob, quantizer.zero)) : zeros.blob});
  const bool is_row = axis == 0 && tensor.shape.size() == 2 && tensor.shape[1] > 0;
  tensor.attributes = byte_code_attributes(is_row ? tensor.shape[1] : 0, is_row ? 1 : axis, std::nullopt);
}

float TensorBuilder::scale_of(Id id) {
  if (pickle_.kind(id) != Kind::real) fail(id, ErrorKind::invalid_file, "scale: expected a number");
  const double scale = pickle_.real(id);
  const auto rounded = static_cast<float>(scale);
  if (!std::isfinite(rounded) || !(scale > 0) || rounded == 0)
    fail(id, ErrorKind::invalid_file, fmt::format("scale: {}, expected a positive number of float32", scale));
  if (double{rounded} == scale) return rounded;
  if (rounded_++ == 0) first_rounded_ = pickle_.offset(id);
  return rounded;
}

std::int64_t TensorBuilder::zero_of(Id id) const {
  constexpr std::int64_t kMost = 255;
  if (pickle_.kind(id) == Kind::integer && pickle_.integer(id) >= -kMost && pickle_.integer(id) <= kMost)
    return pickle_.integer(id);
  fail(id, ErrorKind::invalid_file, fmt::format("zero_point: expected an integer of -{} to {}", kMost, kMost));
}

std::optional<Finding> TensorBuilder::rounded_scales() const {
  if (rounded_ == 0) return std::nullopt;
  return Finding{
      Severity::warning,
      fmt::format("the scale{} of {} quantized tensor{} {} 64 bits: float32, in which PyTorch computes, takes "
                  "{} place",
                  rounded_ == 1 ? "" : "s", rounded_, rounded_ == 1 ? "" : "s", rounded_ == 1 ? "has" : "have",
                  rounded_ == 1 ? "its" : "their"),
      path_, first_rounded_};
}

}  // namespace poise::pytorch
