#include "views/dense.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "io/read_fully.hpp"
#include "tensor/block_layout.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

std::optional<TensorLayout> read_dense(const Tensor&, std::string_view name) {
  return name == layouts::dense.name ? std::optional<TensorLayout>(Layout::dense) : std::nullopt;
}

void check_dense(const Tensor& tensor) {
  const Part& data = require_data(tensor);
  if (data.dtype == DType::unknown || !data.blob->decodable()) return;
  const auto bytes = packed_bytes(data.dtype, tensor.elements());
  if (!bytes)
    fail_parts(tensor, fmt::format("shape {} of {} overflows 64 bits", to_string(tensor.shape), data.type_name()));
  if (*bytes != data.blob->size()) {
    fail_parts(tensor, fmt::format("shape {} of {} needs {} bytes, data holds {}", to_string(tensor.shape),
                                   data.type_name(), *bytes, data.blob->size()));
  }
}

// Returns the rules for values: with two elements a byte and an odd number of elements, the high half of the last byte
// must be zero.
ValueRules make_dense_rules(const Tensor& tensor, const Part& part) {
  ValueRules rules{part.dtype};
  const bool halves = part.dtype != DType::unknown && info(part.dtype).bits == 4;
  if (halves && tensor.elements() % 2 != 0 && part.blob->size() == tensor.elements() / 2 + 1)
    rules.last_half = ValueRules::LastHalf::unused;
  return rules;
}

bool has_float_data(const Tensor& tensor) { return is_floating(tensor.require("data").dtype); }
DType get_data_type(const Tensor& tensor) { return tensor.require("data").dtype; }
BlobPtr get_data(const Tensor& tensor) { return tensor.require("data").blob; }

bool is_stored_as_numbers(const Tensor& tensor, const StoredType& type) {
  return !type.quantized() && tensor.require("data").dtype == type.dtype;
}

// Returns true if the numbers are computed from codes and from scales in separate parts.
bool has_scales(const Tensor& tensor) {
  const auto is_float = [](const Part& part) { return is_floating(part.dtype); };
  return find_layout_type(tensor.layout).quantized && find_element_type(tensor) == DType::f32 &&
         std::ranges::any_of(tensor.parts, is_float);
}

// Returns the elements, computed when they are read. Reading throws unsupported if an element is infinite although no
// number of the parts is.
BlobPtr make_elements(const Tensor& tensor) {
  BlobPtr elements = find_layout_type(tensor.layout).elements(tensor);
  if (!has_scales(tensor)) return elements;
  return add_overflow_checks(fmt::format("tensor {}", tensor.name), std::move(elements),
                             {tensor.parts.begin(), tensor.parts.end()});
}

// Returns true if a number of the part is so large that its product with another number, or with a code, may overflow
// float32.
bool has_enormous_numbers(const Part& part) {
  constexpr double kEnormous = 1e12;
  const bool may_have =
      part.dtype == DType::f64 || part.dtype == DType::f32 || part.dtype == DType::bf16 || part.dtype == DType::f8_e8m0;
  return may_have && has_number(part, [](double number) { return std::abs(number) > kEnormous; });
}

// Returns the elements as float32. Throws unsupported if Poise cannot decode them.
BlobPtr make_float32_numbers(const Tensor& tensor) {
  if (!has_float_elements(tensor)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: it is stored as {}, which Poise cannot decode to floating-point numbers",
                            tensor.name, describe_storage(tensor)));
  }
  return make_dense_blob(tensor, DType::f32);
}

}  // namespace

const LayoutType layouts::dense = {
    .name = "dense",
    .read = read_dense,
    .check = check_dense,
    .value_rules = make_dense_rules,
    .has_float_elements = has_float_data,
    .element_type = get_data_type,
    .elements = get_data,
    .stored_type = describe_storage,
    .is_stored_as = is_stored_as_numbers,
};

bool has_float_elements(const Tensor& tensor) {
  const LayoutType& type = find_layout_type(tensor.layout);
  return type.has_float_elements != nullptr && type.has_float_elements(tensor);
}

std::string describe_storage(const Tensor& tensor) {
  if (const BlockType* blocks = get_block_type(tensor.layout)) return std::string(blocks->name);
  if (tensor.layout == Layout::other) return fmt::format("layout {}", tensor.layout.name());
  if (tensor.layout != Layout::dense) return std::string(tensor.layout.name());
  const Part& data = tensor.require("data");
  return data.dtype == DType::unknown ? fmt::format("type {}", data.type_name()) : std::string(to_string(data.dtype));
}

std::string describe_stored_type(const Tensor& tensor) {
  const LayoutType& type = find_layout_type(tensor.layout);
  return type.stored_type != nullptr ? type.stored_type(tensor) : describe_storage(tensor);
}

DType find_element_type(const Tensor& tensor) {
  const LayoutType& type = find_layout_type(tensor.layout);
  return type.element_type != nullptr ? type.element_type(tensor) : DType::f32;
}

BlobPtr make_dense_blob(const Tensor& tensor, DType to, LossyBlobPtr<CastStats>* cast) {
  return make_cast_blob(tensor.name, make_elements(tensor), find_element_type(tensor), tensor.elements(), to, cast);
}

void require_finite_numbers(const Tensor& tensor) {
  const auto is_decodable = [](const Part& part) { return part.blob->decodable(); };
  if (!has_float_elements(tensor) || !has_scales(tensor) || !std::ranges::all_of(tensor.parts, is_decodable) ||
      std::ranges::none_of(tensor.parts, has_enormous_numbers))
    return;
  const BlobPtr numbers = make_dense_blob(tensor, DType::f32);
  const auto stream = numbers->stream();
  std::vector<std::byte> bytes(stream->best_read());
  while (stream->read(bytes) != 0) {
  }
}

Tensor cast_values(Tensor tensor, DType to, LossyBlobPtr<CastStats>* cast) {
  const auto values = std::ranges::find(tensor.parts, "values", &Part::role);
  values->blob = make_cast_blob(tensor.name, values->blob, values->dtype, count_stored_elements(tensor), to, cast);
  values->dtype = to;
  values->spelling.clear();
  values->digest.reset();
  return tensor;
}

Tensor make_dense_tensor(const Tensor& tensor) {
  if (tensor.layout == Layout::dense) return tensor;
  return make_dense(tensor.name, tensor.shape, find_element_type(tensor), make_elements(tensor));
}

std::vector<float> values(const Tensor& tensor) {
  const BlobPtr numbers = make_float32_numbers(tensor);
  std::vector<float> result(static_cast<std::size_t>(tensor.elements()));
  read_fully(*numbers->stream(), std::as_writable_bytes(std::span(result)));
  return result;
}

void read_values(const Tensor& tensor, std::uint64_t first, std::span<float> out) {
  const BlobPtr numbers = make_float32_numbers(tensor);
  if (first > tensor.elements() || out.size() > tensor.elements() - first) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("tensor {}: cannot read {} elements from element {} on: the tensor has {}", tensor.name,
                            out.size(), first, tensor.elements()));
  }
  if (!out.empty()) numbers->read(first * sizeof(float), std::as_writable_bytes(out));
}

Tensor make_tensor(std::string name, Shape shape, const std::vector<float>& elements) {
  static_assert(std::endian::native == std::endian::little);  // the byte order of files
  if (element_count(shape) != elements.size()) {
    throw Error(ErrorKind::bad_argument, fmt::format("tensor {}: {} elements do not fill the shape {}", name,
                                                     elements.size(), to_string(shape)));
  }
  std::vector<std::byte> bytes(elements.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  BlobPtr data = make_memory_blob(std::move(bytes), name);
  return make_dense(std::move(name), std::move(shape), DType::f32, std::move(data));
}

}  // namespace poise
