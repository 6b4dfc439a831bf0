// A NodeProto of onnx.proto: the tensors in its attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/onnx/sparse_proto.hpp"

namespace poise::onnx {

struct Node {
  bool is_constant = false;  // its only tensor is its output
  std::vector<TensorProto> tensors;
  std::vector<SparseProto> sparse;
  // Where attributes begin that hold lists of tensors, and graphs.
  std::vector<std::uint64_t> lists;
  std::vector<std::uint64_t> graphs;
};

// Numbers and texts of a Constant (value_float, value_ints, value_string, ...) are tensors, too. Tensors of a Constant
// have the name of its output. Throws invalid_file.
Node read_node(const Message& message, const Source& source);

}  // namespace poise::onnx
