#include "runtime/stored_form.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// The kernels' names of element types.
struct FloatForm {
  DType dtype;
  Storage storage;
};
constexpr FloatForm kFloatForms[] = {
    {DType::f32, Storage::f32}, {DType::f16, Storage::f16}, {DType::bf16, Storage::bf16}};

struct AffineForm {
  DType dtype;
  bool ranged;
  bool packed;  // several codes in a byte
  Storage storage;
};
constexpr AffineForm kAffineForms[] = {
    {DType::qint8, false, false, Storage::i8},       {DType::qint8, false, true, Storage::i8},
    {DType::qint8, true, false, Storage::u8},        {DType::qint8, true, true, Storage::u8},
    {DType::qint4, false, true, Storage::i4},        {DType::qint4, true, true, Storage::u4},
    {DType::qint4, false, false, Storage::i4_bytes}, {DType::qint4, true, false, Storage::u4_bytes},
};

struct GroupForm {
  unsigned bits;
  Storage storage;
};
constexpr GroupForm kGroupForms[] = {{8, Storage::group8}, {4, Storage::group4}};

std::optional<StoredForm> affine_form(const Tensor& tensor) {
  const Part& data = tensor.require("data");
  const Affine affine = tensor.layout.affine()->get();
  if (!std::isfinite(affine.delta) || !std::isfinite(affine.min) || !std::isfinite(affine.max))
    refuse_weight(tensor, "its scale is not finite");
  const auto* const form = std::ranges::find_if(kAffineForms, [&](const AffineForm& row) {
    return row.dtype == data.dtype && row.ranged == affine.ranged() && row.packed == affine.packed;
  });
  if (form == std::end(kAffineForms))
    refuse_weight(tensor, fmt::format("its codes are {}, expected qint8 or qint4", data.type_name()));
  return StoredForm{{.storage = form->storage, .scale = affine.delta, .offset = affine.ranged() ? affine.min : 0.0F},
                    data.blob};
}

// Groups in the form of quantize_groups(); nothing for other schemes.
std::optional<StoredForm> group_form(const Tensor& tensor) {
  check_group_parts(tensor);
  const GroupScheme& scheme = *group_scheme(tensor.layout);
  const std::size_t last = tensor.shape.size() - 1;
  const auto* const form = std::ranges::find(kGroupForms, scheme.bits, &GroupForm::bits);
  const bool in_bytes = form != std::end(kGroupForms) && scheme.per_word * scheme.bits == info(scheme.word).bits &&
                        !scheme.high_bits_first;
  const bool in_rows =
      scheme.axis == last && scheme.packing_axis == last && scheme.group_size > 0 && scheme.group_size % 16 == 0;
  if (!in_bytes || !in_rows || scheme.zeros != GroupScheme::Zeros::plain || scheme.power_of_two) return std::nullopt;
  const Part& scales = tensor.require("scales");
  const Part& zeros = tensor.require("zeros");
  if (scales.dtype != DType::f16 || zeros.dtype != DType::f16) return std::nullopt;
  StoredRows rows;
  rows.storage = form->storage;
  rows.group_size = static_cast<std::size_t>(scheme.group_size);
  return StoredForm{rows, tensor.require("packed_weight").blob, scales.blob, zeros.blob};
}

// MX numbers of four bits along rows; nothing for other tensors.
std::optional<StoredForm> mx_form(const Tensor& tensor) {
  check_mx_parts(tensor);
  const MxScheme& scheme = *mx_scheme(tensor.layout);
  const Part& data = tensor.require("data");
  if (data.dtype != DType::f4_e2m1 || scheme.axis + 1 != tensor.shape.size() || scheme.block_size != 32)
    return std::nullopt;
  StoredRows rows;
  rows.storage = Storage::mx4;
  rows.group_size = 32;
  return StoredForm{rows, data.blob, tensor.require("scales").blob};
}

// Blocks along rows.
std::optional<StoredForm> block_form(const Tensor& tensor) {
  if (blocks_along(tensor.layout) != BlocksAlong::rows) return std::nullopt;
  check_block_parts(tensor);
  return StoredForm{{.storage = Storage::blocks, .blocks = block_type(tensor.layout)}, tensor.require("data").blob};
}

std::optional<StoredForm> dense_form(const Tensor& tensor) {
  const Part& data = tensor.require("data");
  const auto* const form = std::ranges::find(kFloatForms, data.dtype, &FloatForm::dtype);
  if (form == std::end(kFloatForms)) return std::nullopt;
  return StoredForm{{.storage = form->storage}, data.blob};
}

// Layouts that kernels take in stored form. Each returns nothing for tensors that they do not.
struct FormRow {
  const LayoutType* layout;
  std::optional<StoredForm> (*form)(const Tensor& tensor);
};
constexpr FormRow kForms[] = {
    {&layouts::dense, dense_form}, {&layouts::affine, affine_form}, {&layouts::groups, group_form},
    {&layouts::mx, mx_form},       {&layouts::blocks, block_form},
};

}  // namespace

void refuse_weight(const Tensor& tensor, std::string_view reason) {
  throw Error(ErrorKind::unsupported, fmt::format("tensor {} cannot be used as a weight: {}", tensor.name, reason));
}

StoredForm stored_form(const Tensor& tensor) {
  const LayoutType& layout = layout_type(tensor.layout);
  if (!has_float_elements(tensor)) {
    if (&layout == &layouts::dense)
      refuse_weight(tensor, fmt::format("its elements are {}; a weight is floating-point, or has a scale",
                                        tensor.require("data").type_name()));
    refuse_weight(tensor, fmt::format("it is stored as {}, which Poise makes no numbers of", storage_name(tensor)));
  }
  const auto* const row = std::ranges::find(kForms, &layout, &FormRow::layout);
  if (row != std::end(kForms)) {
    if (auto form = row->form(tensor)) return std::move(*form);
  }
  return {{.storage = Storage::f32}, dense_blob(tensor, DType::f32)};
}

}  // namespace poise
