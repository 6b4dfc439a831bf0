// A NodeProto of onnx.proto: the tensors in its attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/value.hpp>

#include "formats/onnx/tensor_proto.hpp"
#include "syntax/protobuf.hpp"
#include "syntax/value_budget.hpp"

namespace poise::onnx {

struct Node {
  bool is_constant = false;  // its only tensor is its output
  std::vector<TensorProto> tensors;
  std::vector<SparseProto> sparse;
  // The offsets of attributes that hold lists of tensors, and of attributes that hold graphs.
  std::vector<std::uint64_t> lists;
  std::vector<std::uint64_t> graphs;
};

// Reads the tensors of a node. Numbers and texts of a Constant (value_float, value_ints, value_string, ...) are
// tensors, too. Tensors of a Constant have the name of its output. Throws invalid_file.
Node read_node(const Message& message, const Source& source);

// Converts an ONNX model's descriptions of its inputs, outputs and itself to values.
class ValueReader {
 public:
  using Message = protobuf::Message;

  // Reads a ValueInfoProto: {"name": "x", "type": "FLOAT", "shape": ["batch", 3, null]}. For values that are not
  // tensors, "type" is their kind.
  Value read_value_info(Message message);
  // Reads a StringStringEntryProto.
  Attributes::Entry read_entry(Message message);
  // Reads an OperatorSetIdProto: a domain, by default "ai.onnx", and a version.
  Attributes::Entry read_operator_set(Message message);
  std::string text(Message& message, std::string_view field);

 private:
  void read_type(Message message, Attributes& into);
  void read_tensor_type(Message message, Attributes& into);
  Value read_dimension(Message message);
  void charge(const Message& message, std::size_t text_bytes = 0);

  ValueBudget budget_{0};
};

}  // namespace poise::onnx
