// Builds tensors from the calls in a pickle: the functions _rebuild_tensor_v2(storage, offset, size, stride, ...),
// _rebuild_parameter(data, ...), _rebuild_sparse_tensor(layout, parts), _rebuild_qtensor(...) and others. Source:
// torch/_utils.py of PyTorch.
#include "formats/pytorch/tensor_builder.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "formats/pickle_globals.hpp"
#include "model/limits.hpp"
#include "tensor/group_scheme.hpp"
#include "views/integer_blobs.hpp"
#include "views/sparse.hpp"
#include "views/strided.hpp"

namespace poise::pytorch {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

namespace {

constexpr std::string_view kParameter = "torch.nn.parameter.Parameter";
constexpr std::string_view kSparse = "torch._utils._rebuild_sparse_tensor";
constexpr std::string_view kSparseRows = "torch._utils._rebuild_sparse_csr_tensor";
constexpr std::string_view kQuantized = "torch._utils._rebuild_qtensor";

// A view may repeat elements: it may have kFreeViewBytes, and kMostRepeats times the bytes of its storage.
constexpr std::uint64_t kFreeViewBytes = 16 << 20;
constexpr std::uint64_t kMostRepeats = 1024;

}  // namespace

void TensorBuilder::fail(Id id, ErrorKind kind, const std::string& problem) const {
  throw Error(kind, "pytorch: " + problem, path_, pickle_.offset(id));
}

bool TensorBuilder::is_tensor(Id id) const {
  const std::string name = find_function_name(id);
  return name.starts_with("torch._utils._rebuild_") || name == "torch._tensor._rebuild_from_type_v2" ||
         name == "torch.Tensor" || name == kParameter;
}

Tensor TensorBuilder::make_tensor(std::string name, Id id) {
  const Making making = find_making_call(id, 0);
  if (making.function == kSparse || making.function == kSparseRows) return build_sparse(std::move(name), making);
  if (making.function == kQuantized) return build_quantized(std::move(name), making);
  return build_dense(std::move(name), read_view(making));
}

std::span<const Id> TensorBuilder::read_arguments(Id id, std::size_t least) const {
  const std::span<const Id> items = pickle_.items(pickle_.call(id).arguments);
  if (items.size() < least)
    fail(id, ErrorKind::invalid_file,
         fmt::format("{}: {} arguments, at least {} are needed", find_function_name(id), items.size(), least));
  return items;
}

// Returns the call that makes a tensor: for a parameter, the call that makes its data.
TensorBuilder::Making TensorBuilder::find_making_call(Id id, std::size_t depth) {
  constexpr std::size_t kMostWrappings = 8;
  const std::string function = find_function_name(id);
  if (const auto change = find_tensor_change(pickle_, id))
    fail(id, ErrorKind::unsupported,
         fmt::format("the pickle changes a tensor that {} makes: {}. PyTorch's own files do not: in Python, load the "
                     "file where that is safe, and save its state_dict()",
                     function, *change));
  if (has_attributes(pickle_, id) && with_attributes_++ == 0) first_with_attributes_ = pickle_.offset(id);
  if (depth < kMostWrappings && (function == "torch._utils._rebuild_parameter" ||
                                 function == "torch._utils._rebuild_parameter_with_state" || function == kParameter)) {
    const Id data = read_arguments(id, 1)[0];
    if (is_tensor(data)) return find_making_call(data, depth + 1);
    fail(data, ErrorKind::invalid_file, fmt::format("{}: expected a tensor", function));
  }
  if (function == "torch._tensor._rebuild_from_type_v2") return read_typed_call(id);
  return {id, function, read_arguments(id, 0)};
}

// Reads the arguments of _rebuild_from_type_v2: a function, the class of its result, and the function's arguments.
TensorBuilder::Making TensorBuilder::read_typed_call(Id id) const {
  const auto parts = read_arguments(id, 3);
  for (const Id part : parts.first(2)) {
    if (pickle_.kind(part) != Kind::global) fail(part, ErrorKind::invalid_file, "expected a function and a class");
  }
  const std::string type = make_full_name(pickle_.global(parts[1]));
  if (type != kParameter && type != "torch.Tensor" && type != "torch.nn.parameter.Buffer")
    fail(parts[1], ErrorKind::unsupported,
         fmt::format("tensors of the class {} are not read{}", type,
                     type.starts_with("torchao.")
                         ? ": save the model with transformers and torchao as safetensors, or in Python x.dequantize()"
                         : ""));
  if (pickle_.kind(parts[2]) != Kind::tuple) fail(parts[2], ErrorKind::invalid_file, "expected a tuple of arguments");
  return {id, make_full_name(pickle_.global(parts[0])), pickle_.items(parts[2])};
}

void TensorBuilder::require_arguments(const Making& making, std::size_t least) const {
  if (making.arguments.size() < least)
    fail(making.id, ErrorKind::invalid_file,
         fmt::format("{}: {} arguments, at least {} are needed", making.function, making.arguments.size(), least));
}

std::uint64_t TensorBuilder::read_natural(Id id, std::string_view field) const {
  if (pickle_.kind(id) == Kind::integer && pickle_.integer(id) >= 0)
    return static_cast<std::uint64_t>(pickle_.integer(id));
  fail(id, ErrorKind::invalid_file, fmt::format("{}: expected a non-negative integer of 63 bits", field));
}

// Throws for a list that the pickle changes after the call, since the function saw other numbers.
void TensorBuilder::refuse_changed(Id container, Id call, std::string_view field) const {
  if (pickle_.is_changed_after(container, call))
    fail(container, ErrorKind::unsupported,
         fmt::format("{}: the pickle changes the list after {} received it", field, find_function_name(call)));
}

// Returns the items of a tuple or a list that has a number for each dimension.
std::span<const Id> TensorBuilder::read_items(const Making& making, Id id, std::string_view field) const {
  refuse_changed(id, making.id, field);
  if (find_function_name(id) == "torch.Size" && !pickle_.items(pickle_.call(id).arguments).empty()) {
    const Id list = pickle_.items(pickle_.call(id).arguments)[0];
    refuse_changed(list, id, field);
    id = list;
  }
  if (pickle_.kind(id) != Kind::tuple && pickle_.kind(id) != Kind::list)
    fail(id, ErrorKind::invalid_file, fmt::format("{}: expected a tuple", field));
  const std::span<const Id> items = pickle_.items(id);
  if (items.size() > kMaxRank)
    fail(id, ErrorKind::unsupported, fmt::format("{}: more than {} dimensions", field, kMaxRank));
  return items;
}

TensorBuilder::View TensorBuilder::read_view(const Making& making) const {
  const bool has_dtype = making.function == "torch._utils._rebuild_tensor_v3";
  if (!has_dtype && making.function != "torch._utils._rebuild_tensor_v2" &&
      making.function != "torch._utils._rebuild_tensor" && making.function != kQuantized)
    fail(making.id, ErrorKind::unsupported, fmt::format("tensors that {} makes are not read", making.function));
  require_arguments(making, has_dtype ? 7 : 4);
  const std::span<const Id> arguments = making.arguments;
  View view;
  view.storage = arguments[0];
  view.offset = read_natural(arguments[1], "storage_offset");
  for (const Id length : read_items(making, arguments[2], "size")) view.shape.push_back(read_natural(length, "size"));
  for (const Id stride : read_items(making, arguments[3], "stride")) {
    if (pickle_.kind(stride) != Kind::integer) fail(stride, ErrorKind::invalid_file, "stride: expected integers");
    view.strides.push_back(pickle_.integer(stride));
  }
  if (view.shape.size() != view.strides.size())
    fail(making.id, ErrorKind::invalid_file,
         fmt::format("expected as many strides as sizes, found {} strides and {} sizes", view.strides.size(),
                     view.shape.size()));
  const auto metadata = arguments.subspan(std::min<std::size_t>(arguments.size(), has_dtype ? 7 : 6));
  if (!metadata.empty()) refuse_changed(metadata[0], making.id, "metadata");
  refuse_pending_change(metadata);
  if (!has_dtype) return view;
  const Id dtype = arguments[6];
  const std::string name = pickle_.kind(dtype) == Kind::global ? make_full_name(pickle_.global(dtype)) : std::string();
  const auto known = find_torch_dtype(name);
  if (!known) fail(dtype, ErrorKind::unsupported, fmt::format("the element type \"{}\" is not known", name));
  view.dtype = *known;
  return view;
}

// Throws for a tensor that torch 2 stores with a flag, which asks the loader to conjugate or negate it.
void TensorBuilder::refuse_pending_change(std::span<const Id> metadata) const {
  if (metadata.empty() || pickle_.kind(metadata[0]) != Kind::dict) return;
  const std::span<const Id> items = pickle_.items(metadata[0]);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (pickle_.kind(items[i]) != Kind::text ||
        (pickle_.kind(items[i + 1]) == Kind::boolean && !pickle_.boolean(items[i + 1])))
      continue;
    const std::string_view key = pickle_.text(items[i]);
    if (key == "conj" || key == "neg")
      fail(items[i], ErrorKind::unsupported,
           fmt::format("the tensor is stored before its {}: in Python, save x.resolve_{}()",
                       key == "conj" ? "conjugation" : "negation", key));
  }
}

StorageName TensorBuilder::read_storage(const View& view) const {
  if (pickle_.kind(view.storage) != Kind::persistent) fail(view.storage, ErrorKind::invalid_file, "expected a storage");
  return read_storage_name(pickle_, view.storage, path_);
}

Tensor TensorBuilder::build_dense(std::string name, const View& view) const {
  const StorageName storage = read_storage(view);
  const DType dtype = view.dtype == DType::unknown ? storage.dtype : view.dtype;
  const unsigned item = info(dtype).bits / 8;
  const BlobPtr whole = storages_.find(storage);
  const auto first = checked_add(view.offset, storage.first);
  const auto offset = first ? checked_mul(*first, item) : std::nullopt;
  const auto elements = element_count(view.shape);
  const auto bytes = elements ? checked_mul(*elements, item) : std::nullopt;
  if (!offset || !bytes)
    throw Error(ErrorKind::invalid_file, fmt::format("size: {} takes more than 2^64 bytes", to_string(view.shape)));
  if (*bytes > kFreeViewBytes && (*bytes - kFreeViewBytes) / kMostRepeats > whole->size())
    throw Error(ErrorKind::unsupported, fmt::format("a view of {} bytes repeats a storage of {} bytes, expected at "
                                                    "most {} times: in Python, save x.contiguous()",
                                                    *bytes, whole->size(), kMostRepeats));
  Strided strided{.shape = view.shape, .strides = {}, .offset = *offset, .item_bytes = item};
  for (const std::int64_t stride : view.strides) {
    std::int64_t in_bytes = 0;
    if (__builtin_mul_overflow(stride, static_cast<std::int64_t>(item), &in_bytes))
      throw Error(ErrorKind::invalid_file, fmt::format("stride: {} elements take more than 2^63 bytes", stride));
    strided.strides.push_back(in_bytes);
  }
  const unsigned number = get_number_bytes(dtype);
  strided.swapped = storages_.is_big_endian() && number > 1 ? number : 0;
  return make_dense(std::move(name), view.shape, dtype, make_strided_blob(whole, strided));
}

// Builds a part of a sparse or quantized tensor.
Tensor TensorBuilder::make_dense_part(std::string name, Id id) {
  if (!is_tensor(id)) fail(id, ErrorKind::invalid_file, fmt::format("{}: expected a tensor", name));
  return build_dense(std::move(name), read_view(find_making_call(id, 0)));
}

// Builds a sparse tensor from its layout and a tuple of index tensors, values and size.
Tensor TensorBuilder::build_sparse(std::string name, const Making& making) {
  require_arguments(making, 2);
  const Id layout = making.arguments[0];
  std::string form;
  if (find_function_name(layout) == "torch.serialization._get_layout") {
    const Id word = read_arguments(layout, 1)[0];
    if (pickle_.kind(word) == Kind::text) form = pickle_.text(word);
  }
  const bool is_coo = form == "torch.sparse_coo";
  if (!is_coo && form != "torch.sparse_csr")
    fail(layout, ErrorKind::unsupported,
         fmt::format("sparse tensors of the layout \"{}\" are not read: in Python, save x.to_sparse_coo()", form));
  const Id data = making.arguments[1];
  if (pickle_.kind(data) != Kind::tuple || pickle_.items(data).size() < (is_coo ? 3 : 4))
    fail(data, ErrorKind::invalid_file, "expected a tuple of indices, values and a size");
  const std::span<const Id> parts = pickle_.items(data);
  Tensor tensor;
  tensor.name = std::move(name);
  for (const Id length : read_items(making, parts[is_coo ? 2 : 3], "size"))
    tensor.shape.push_back(read_natural(length, "size"));
  if (!element_count(tensor.shape)) fail(data, ErrorKind::invalid_file, "size: more than 2^64 elements");
  if (tensor.shape.empty())
    fail(data, ErrorKind::unsupported, "a sparse tensor without dimensions is not read: in Python, save x.to_dense()");
  const Tensor values = make_dense_part("values", parts[is_coo ? 1 : 2]);
  if (values.shape.size() != 1)
    fail(data, ErrorKind::unsupported,
         "a sparse tensor whose values are tensors themselves is not read: in Python, save x.to_dense()");
  const auto add = [&](std::string_view role, const Tensor& part) {
    tensor.parts.push_back({.role = std::string(role), .dtype = part.parts[0].dtype, .blob = part.parts[0].blob});
  };
  add("values", values);
  if (is_coo) {
    const Tensor coords = make_dense_part("indices", parts[0]);
    if (coords.shape != Shape{tensor.shape.size(), values.shape[0]})
      fail(data, ErrorKind::invalid_file,
           fmt::format("indices: expected the shape {}, found {}",
                       to_string(Shape{tensor.shape.size(), values.shape[0]}), to_string(coords.shape)));
    add("coords", coords);
    tensor.layout = TensorLayout::Sparse{Layout::sparse_coo, false};
  } else {
    add("indices", make_dense_part("col_indices", parts[1]));
    add("indptr", make_dense_part("crow_indices", parts[0]));
    tensor.layout = TensorLayout::Sparse{Layout::sparse_csr, false};
  }
  if (const auto fault = find_sparse_structure_fault(tensor)) throw Error(ErrorKind::invalid_file, *fault);
  return tensor;
}

std::vector<Finding> TensorBuilder::list_findings() const {
  std::vector<Finding> findings;
  if (auto rounded = describe_rounded_scales()) findings.push_back(*std::move(rounded));
  if (with_attributes_ > 0)
    findings.push_back(
        {Severity::warning,
         fmt::format("{} {} attributes of {} own, which are left out", format_count(with_attributes_, "tensor"),
                     with_attributes_ == 1 ? "has" : "have", with_attributes_ == 1 ? "its" : "their"),
         path_, first_with_attributes_});
  return findings;
}

// In a quantized tensor, value = (code - zero) * scale, with codes of 8 bits.

namespace {

constexpr std::int64_t kSignedZero = 128;  // the zero of signed codes that are stored as unsigned ones

}  // namespace

Tensor TensorBuilder::build_quantized(std::string name, const Making& making) {
  require_arguments(making, 5);
  const View view = read_view(making);
  const std::string type = read_storage(view).type;
  const bool is_signed = type == "torch.QInt8Storage";
  if (!is_signed && type != "torch.QUInt8Storage")
    fail(view.storage, ErrorKind::unsupported,
         fmt::format("quantized tensors of {} are not read: in Python, save x.dequantize()", type));
  const Id parameters = making.arguments[4];
  if (pickle_.kind(parameters) != Kind::tuple || pickle_.items(parameters).empty())
    fail(parameters, ErrorKind::invalid_file, "quantizer_params: expected a tuple");
  const std::span<const Id> parts = pickle_.items(parameters);
  const std::string scheme = pickle_.kind(parts[0]) == Kind::global ? make_full_name(pickle_.global(parts[0])) : "";
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
  Tensor tensor = build_dense(std::move(name), view);
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
  tensor.layout = make_group_layout(read_group_scheme(tensor, GroupWords::zt2));
  return tensor;
}

// Adds one scale for the whole tensor: each row is a group, and all groups share one stored number.
void TensorBuilder::add_scale(Tensor& tensor, const Quantizer& quantizer) {
  const std::uint64_t row = tensor.shape.back();
  const std::uint64_t rows = row == 0 ? 0 : tensor.elements() / row;
  ByteWriter scale;
  scale.append_f32(read_scale(quantizer.parameters[0]));
  const BlobPtr one = make_memory_blob({scale.bytes().begin(), scale.bytes().end()}, path_);
  tensor.parts.push_back(
      {.role = "scales",
       .dtype = DType::f32,
       .blob = make_strided_blob(one, {.shape = {rows}, .strides = {0}, .item_bytes = sizeof(float)})});
  tensor.attributes = make_byte_code_attributes(std::max<std::uint64_t>(1, row), tensor.shape.size() - 1,
                                                read_zero_point(quantizer.parameters[1]) + quantizer.zero);
}

// Adds a scale for each index along an axis. On axis 0 of a matrix, each row becomes a group, because more programs
// read such groups.
void TensorBuilder::add_scales(Tensor& tensor, const Quantizer& quantizer) {
  const std::uint64_t axis = read_natural(quantizer.parameters[2], "axis");
  if (axis >= tensor.shape.size())
    fail(quantizer.parameters[2], ErrorKind::invalid_file,
         fmt::format("axis {} is out of range: the shape is {}", axis, to_string(tensor.shape)));
  const auto read_numbers = [&](std::string_view field, Id id) {
    const Tensor part = make_dense_part(std::string(field), id);
    if (part.shape != Shape{tensor.shape[axis]})
      fail(id, ErrorKind::invalid_file,
           fmt::format("{}: expected the shape [{}], found {}", field, tensor.shape[axis], to_string(part.shape)));
    return part.parts[0];
  };
  const Part scales = read_numbers("scales", quantizer.parameters[0]);
  if (scales.dtype != DType::f32 && scales.dtype != DType::f64)
    fail(quantizer.parameters[0], ErrorKind::unsupported,
         fmt::format("scales: expected f32 or f64, found {}", to_string(scales.dtype)));
  const Part zeros = read_numbers("zero_points", quantizer.parameters[1]);
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
  tensor.attributes = make_byte_code_attributes(is_row ? tensor.shape[1] : 0, is_row ? 1 : axis, std::nullopt);
}

float TensorBuilder::read_scale(Id id) {
  if (pickle_.kind(id) != Kind::real) fail(id, ErrorKind::invalid_file, "scale: expected a number");
  const double scale = pickle_.real(id);
  const auto rounded = static_cast<float>(scale);
  if (!std::isfinite(rounded) || !(scale > 0) || rounded == 0)
    fail(id, ErrorKind::invalid_file, fmt::format("scale: {}, expected a positive number of float32", scale));
  if (double{rounded} == scale) return rounded;
  if (rounded_++ == 0) first_rounded_ = pickle_.offset(id);
  return rounded;
}

std::int64_t TensorBuilder::read_zero_point(Id id) const {
  constexpr std::int64_t kMost = 255;
  if (pickle_.kind(id) == Kind::integer && pickle_.integer(id) >= -kMost && pickle_.integer(id) <= kMost)
    return pickle_.integer(id);
  fail(id, ErrorKind::invalid_file, fmt::format("zero_point: expected an integer of -{} to {}", kMost, kMost));
}

std::optional<Finding> TensorBuilder::describe_rounded_scales() const {
  if (rounded_ == 0) return std::nullopt;
  return Finding{Severity::warning,
                 fmt::format("the scale{} of {} {} 64 bits, and {} float32, in which PyTorch computes",
                             rounded_ == 1 ? "" : "s", format_count(rounded_, "quantized tensor"),
                             rounded_ == 1 ? "has" : "have", rounded_ == 1 ? "becomes" : "become"),
                 path_, first_rounded_};
}

}  // namespace poise::pytorch
