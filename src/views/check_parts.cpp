#include "views/check_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/mx.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem));
}

const Part& require_data(const Tensor& tensor) {
  const Part* data = tensor.part("data");
  if (data == nullptr) fail(tensor, fmt::format("{} needs the part data", to_string(tensor.layout)));
  return *data;
}

// Are the type and the decoded size of a part known?
bool can_be_judged(const Part& part) { return part.dtype != DType::unknown && part.blob->decodable(); }

void check_dense(const Tensor& tensor) {
  const Part& data = require_data(tensor);
  if (!can_be_judged(data)) return;
  const auto bytes = packed_bytes(data.dtype, tensor.elements());
  if (!bytes) fail(tensor, fmt::format("shape {} of {} overflows", to_string(tensor.shape), data.type_name()));
  if (*bytes != data.blob->size()) {
    fail(tensor, fmt::format("shape {} of {} needs {} bytes, data holds {}", to_string(tensor.shape), data.type_name(),
                             *bytes, data.blob->size()));
  }
}

void check_affine(const Tensor& tensor) {
  const Part& data = require_data(tensor);
  if (data.dtype != DType::qint8 && data.dtype != DType::qint4)
    fail(tensor, fmt::format("data: expected qint8 or qint4, found {}", data.type_name()));
  const bool packed = data.dtype == DType::qint4 && tensor.layout.affine()->packed();
  const auto bytes = packed ? packed_bytes(DType::qint4, tensor.elements()) : tensor.elements();
  if (bytes != data.blob->size())
    fail(tensor, fmt::format("the codes of shape {} need {} bytes, data holds {}", to_string(tensor.shape), *bytes,
                             data.blob->size()));
}

}  // namespace

void check_parts(const Tensor& tensor) {
  if (tensor.layout == Layout::dense) return check_dense(tensor);
  if (tensor.layout == Layout::affine) return check_affine(tensor);
  if (tensor.layout.blocks() != nullptr) return check_block_parts(tensor);
  if ((tensor.layout == Layout::other && !is_mx(tensor)) || !std::ranges::all_of(tensor.parts, can_be_judged)) return;
  if (tensor.layout == Layout::quantized_group) {
    if (tensor.layout.groups() != nullptr) check_group_parts(tensor);
  } else if (is_mx(tensor)) {
    check_mx_parts(tensor);
  } else if (const auto fault = sparse_structure_fault(tensor)) {
    fail(tensor, *fault);
  }
}

}  // namespace poise
