#include "runtime/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"
#include "views/integer_blobs.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// Maps an element type to the storage that kernels read.
struct FloatForm {
  DType dtype;
  Storage storage;
};
constexpr FloatForm kFloatForms[] = {
    {DType::f32, Storage::f32}, {DType::f16, Storage::f16}, {DType::bf16, Storage::bf16}};

struct AffineForm {
  DType dtype;
  bool ranged;
  bool packed;  // codes of four bits share a byte; no difference for eight bits
  Storage storage;
};
constexpr AffineForm kAffineForms[] = {
    {DType::qint8, false, false, Storage::i8},       {DType::qint8, false, true, Storage::i8},
    {DType::qint8, true, false, Storage::u8},        {DType::qint8, true, true, Storage::u8},
    {DType::qint4, false, true, Storage::i4},        {DType::qint4, true, true, Storage::u4},
    {DType::qint4, false, false, Storage::i4_bytes}, {DType::qint4, true, false, Storage::u4_bytes},
};

// Lists the storage of small floating-point numbers with float32 scales.
constexpr FloatForm kScaledForms[] = {{DType::f4_e2m1, Storage::codebook4},
                                      {DType::f8_e4m3, Storage::scaled_f8_e4m3},
                                      {DType::f8_e5m2, Storage::scaled_f8_e5m2}};

struct GroupForm {
  unsigned bits;
  unsigned kept;    // bits of a code in the form for kernels
  Storage storage;  // the form for float16 scales and zero points
  Storage scaled;   // the form for float32 scales
  Storage by_column;
};
constexpr GroupForm kGroupForms[] = {{8, 8, Storage::group8, Storage::scaled8, Storage::by_column8},
                                     {4, 4, Storage::group4, Storage::scaled4, Storage::by_column4},
                                     {2, 4, Storage::group4, Storage::scaled4, Storage::by_column4}};

BlobPtr make_float_blob(const Tensor& tensor, const Part& part, std::uint64_t elements) {
  return make_cast_blob(std::string(tensor.name), part.blob, part.dtype, elements, DType::f32);
}

std::optional<StoredForm> make_affine_form(const Tensor& tensor) {
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

// Describes the numbers that share a scale: `group` columns of `rows` rows.
struct ScaleShape {
  std::uint64_t rows = 1;
  std::uint64_t group = 0;
};
// Returns the form for kernels with float32 scales; std::nullopt if they cannot read the tensor.
std::optional<StoredForm> make_scaled_form(const Tensor& tensor, Storage storage, BlobPtr data,
                                           const ScaleShape& shape) {
  if (tensor.elements() == 0) return std::nullopt;
  const std::uint64_t columns = tensor.shape.back();
  const std::uint64_t group = std::min(shape.group, columns);
  if (columns % 16 != 0 || (group % 16 != 0 && group != columns)) return std::nullopt;
  // Each matrix of a tensor must begin with a scale of its own.
  if (tensor.shape.size() > 2 && tensor.shape[tensor.shape.size() - 2] % shape.rows != 0) return std::nullopt;
  const Part& scales = tensor.require("scales");
  const std::uint64_t rows = tensor.elements() / columns;
  StoredForm form = {.rows = {.storage = storage,
                              .group_size = static_cast<std::size_t>(group),
                              .scale_rows = static_cast<std::size_t>(shape.rows)},
                     .data = std::move(data)};
  form.scales = make_float_blob(tensor, scales, ceil_div(rows, shape.rows) * ceil_div(columns, group));
  return form;
}

// Adds the tensor's zero points to a form with float32 scales: an array of floating-point numbers, or one number for
// all. Returns false if the tensor has them in another form.
bool add_zero_points(StoredForm& form, const Tensor& tensor, const GroupScheme& scheme) {
  using Zeros = GroupScheme::Zeros;
  form.rows.offset = static_cast<float>(scheme.zero);
  if (scheme.zeros != Zeros::plain) return scheme.zeros != Zeros::packed;
  const Part& zeros = tensor.require("zeros");
  if (!is_floating(zeros.dtype)) return false;
  form.zeros = make_float_blob(tensor, zeros, form.scales->size() / sizeof(float));
  return true;
}

// Returns the form for codes with float32 scales, in groups along rows or with one scale a row; std::nullopt if kernels
// cannot read the tensor.
std::optional<StoredForm> make_scaled_group_form(const Tensor& tensor, const GroupScheme& scheme, Storage storage,
                                                 BlobPtr codes) {
  const bool is_row = scheme.group_size == 0 && scheme.axis == 0 && tensor.shape.size() == 2;
  if (!is_row && (scheme.group_size == 0 || scheme.axis + 1 != tensor.shape.size())) return std::nullopt;
  auto form =
      make_scaled_form(tensor, storage, std::move(codes), {.group = is_row ? tensor.shape.back() : scheme.group_size});
  return form && add_zero_points(*form, tensor, scheme) ? std::move(form) : std::nullopt;
}

// Returns the codes of all rows, stored with `bits` bits each. Requires: the tensor's codes are packed without gaps,
// low bits first.
BlobPtr make_stored_codes(unsigned bits, const Tensor& tensor, const GroupScheme& scheme) {
  BlobPtr codes = tensor.require("packed_weight").blob;
  if (bits == scheme.bits) return codes;
  const std::uint64_t columns = tensor.shape.back();
  return make_codes_blob(
      {.words = std::move(codes), .rows = tensor.elements() / columns, .columns = columns, .bits = scheme.bits},
      MatrixOrder::same, bits);
}

// Returns the row of kGroupForms for codes that fill the bytes of each row in order, in rows of a multiple of 16
// columns; null for other tensors.
const GroupForm* find_group_form(const Tensor& tensor, const GroupScheme& scheme) {
  const std::size_t last = tensor.shape.size() - 1;
  const auto* const form = std::ranges::find(kGroupForms, scheme.bits, &GroupForm::bits);
  const bool are_rows = scheme.per_word * scheme.bits == info(scheme.word).bits && !scheme.high_bits_first &&
                        scheme.packing_axis == last && tensor.shape[last] % 16 == 0 && tensor.elements() != 0;
  return form == std::end(kGroupForms) || !are_rows ? nullptr : form;
}

// Returns the form for groups along columns of a matrix; groups_of_rows has the group of each row.
std::optional<StoredForm> make_column_group_form(const Tensor& tensor, std::vector<std::uint32_t> groups_of_rows) {
  const GroupScheme& scheme = *get_group_scheme(tensor.layout);
  const GroupForm* const row = find_group_form(tensor, scheme);
  if (row == nullptr) return std::nullopt;
  StoredForm form = {.rows = {.storage = row->by_column}, .data = make_stored_codes(row->kept, tensor, scheme)};
  form.scales = make_float_blob(tensor, tensor.require("scales"), tensor.elements() / scheme.group_size);
  form.row_groups = std::move(groups_of_rows);
  return add_zero_points(form, tensor, scheme) ? std::optional(std::move(form)) : std::nullopt;
}

// Returns the form for groups along rows, or for one scale a row; std::nullopt if kernels cannot read the tensor.
std::optional<StoredForm> make_group_form(const Tensor& tensor) {
  check_group_parts(tensor);
  const GroupScheme& scheme = *get_group_scheme(tensor.layout);
  const std::size_t last = tensor.shape.size() - 1;
  const GroupForm* const form = find_group_form(tensor, scheme);
  if (form == nullptr) return std::nullopt;
  BlobPtr codes = make_stored_codes(form->kept, tensor, scheme);
  const Part& scales = tensor.require("scales");
  const Part* const zeros = tensor.part("zeros");
  const bool are_halves = scheme.zeros == GroupScheme::Zeros::plain && !scheme.power_of_two &&
                          scales.dtype == DType::f16 && zeros != nullptr && zeros->dtype == DType::f16;
  if (!are_halves || scheme.axis != last || scheme.group_size == 0 || scheme.group_size % 16 != 0)
    return make_scaled_group_form(tensor, scheme, form->scaled, std::move(codes));
  return StoredForm{{.storage = form->storage, .group_size = static_cast<std::size_t>(scheme.group_size)},
                    std::move(codes),
                    scales.blob,
                    zeros->blob};
}

// Returns the form for groups along columns, or for groups of columns that are neighbours after a reordering.
std::optional<StoredForm> make_indexed_form(const Tensor& tensor) {
  if (auto groups = read_row_groups(tensor)) return make_column_group_form(groups->groups, std::move(groups->index));
  auto sorted = sort_groups(tensor);
  if (!sorted) return std::nullopt;
  auto form = make_group_form(sorted->groups);
  if (form) form->column_order = std::move(sorted->order);
  return form;
}

// Returns the form for codebooks. A block, whose codes share a scale, may be a part of a row, or some rows.
std::optional<StoredForm> make_codebook_form(const Tensor& tensor) {
  check_codebook(tensor);
  const std::uint64_t block = get_codebook_block(tensor);
  const std::uint64_t columns = tensor.shape.back();
  if (columns == 0 || (columns % block != 0 && block % columns != 0)) return std::nullopt;
  auto form = make_scaled_form(tensor, Storage::codebook4, tensor.require("data").blob,
                               {.rows = std::max<std::uint64_t>(1, block / columns), .group = block});
  if (form) form->table = tensor.require("codebook").blob;
  return form;
}

// Returns the sixteen numbers of E2M1, as a codebook.
BlobPtr make_e2m1_numbers() {
  std::vector<std::byte> numbers(16 * sizeof(float));
  for (std::size_t i = 0; i < 16; ++i) {
    const auto code = static_cast<std::byte>(i);
    float number = 0;
    widen(DType::f4_e2m1, &code, std::span(&number, 1));
    std::memcpy(numbers.data() + i * sizeof number, &number, sizeof number);
  }
  return make_memory_blob(std::move(numbers), "numbers of E2M1");
}

// Returns the form for numbers of the types in kScaledForms, with scales; std::nullopt if kernels cannot read the
// tensor.
std::optional<StoredForm> make_block_scaled_form(const Tensor& tensor) {
  check_block_scaled(tensor);
  const Part& data = tensor.require("data");
  const auto* const storage = std::ranges::find(kScaledForms, data.dtype, &FloatForm::dtype);
  if (storage == std::end(kScaledForms)) return std::nullopt;
  const BlockShape block = get_block_scaled_shape(tensor);
  const std::uint64_t rows = tensor.shape[tensor.shape.size() - 2];
  auto form = make_scaled_form(tensor, storage->storage, data.blob,
                               {.rows = std::min(block.rows, rows), .group = block.columns});
  if (form && data.dtype == DType::f4_e2m1) form->table = make_e2m1_numbers();
  return form;
}

// Returns the form for MX numbers of four bits along rows; std::nullopt for other tensors.
std::optional<StoredForm> make_mx_form(const Tensor& tensor) {
  check_mx_parts(tensor);
  const MxScheme& scheme = *get_mx_scheme(tensor.layout);
  const Part& data = tensor.require("data");
  if (data.dtype != DType::f4_e2m1 || scheme.axis + 1 != tensor.shape.size() || scheme.block_size != 32)
    return std::nullopt;
  return StoredForm{{.storage = Storage::mx4, .group_size = 32}, data.blob, tensor.require("scales").blob};
}

// Returns the form for ggml's blocks along rows; std::nullopt for blocks along columns.
std::optional<StoredForm> make_block_form(const Tensor& tensor) {
  if (get_block_direction(tensor.layout) != BlocksAlong::rows) return std::nullopt;
  check_block_parts(tensor);
  return StoredForm{{.storage = Storage::blocks, .blocks = get_block_type(tensor.layout)}, tensor.require("data").blob};
}

std::optional<StoredForm> make_dense_form(const Tensor& tensor) {
  const Part& data = tensor.require("data");
  const auto* const form = std::ranges::find(kFloatForms, data.dtype, &FloatForm::dtype);
  if (form == std::end(kFloatForms)) return std::nullopt;
  return StoredForm{{.storage = form->storage}, data.blob};
}

// Names a layout that kernels read in its stored form, and the function that returns the form: std::nullopt for tensors
// that kernels cannot read.
struct FormRow {
  const LayoutType* layout;
  std::optional<StoredForm> (*form)(const Tensor& tensor);
};
constexpr FormRow kForms[] = {
    {&layouts::dense, make_dense_form},
    {&layouts::affine, make_affine_form},
    {&layouts::groups, make_group_form},
    {&layouts::indexed_groups, make_indexed_form},
    {&layouts::mx, make_mx_form},
    {&layouts::blocks, make_block_form},
    {&layouts::codebook, make_codebook_form},
    {&layouts::block_scaled, make_block_scaled_form},
};

}  // namespace

void refuse_weight(const Tensor& tensor, std::string_view reason) {
  throw Error(ErrorKind::unsupported, fmt::format("tensor {} cannot be used as a weight: {}", tensor.name, reason));
}

StoredForm make_float_form(const Tensor& tensor) {
  return {{.storage = Storage::f32}, make_dense_blob(tensor, DType::f32)};
}

StoredForm make_stored_form(const Tensor& tensor) {
  const LayoutType& layout = find_layout_type(tensor.layout);
  if (!has_float_elements(tensor)) {
    if (&layout == &layouts::dense)
      refuse_weight(tensor, fmt::format("its elements are {}; a weight is floating-point, or has a scale",
                                        tensor.require("data").type_name()));
    refuse_weight(tensor,
                  fmt::format("it is stored as {}, which Poise cannot decode to numbers", describe_storage(tensor)));
  }
  const auto* const row = std::ranges::find(kForms, &layout, &FormRow::layout);
  if (row != std::end(kForms)) {
    if (auto form = row->form(tensor)) return std::move(*form);
  }
  return make_float_form(tensor);
}

}  // namespace poise
