// A SparseTensorProto of onnx.proto, as a tensor of coordinates.
#pragma once

#include "formats/onnx/tensor_proto.hpp"

namespace poise::onnx {

struct SparseProto {
  TensorProto values;   // of one dimension; its name is the tensor's
  TensorProto indices;  // [values, dimensions], or [values]: numbers in row-major order
  Shape dims;
};

// Throws invalid_file.
SparseProto read_sparse_proto(Message message);

// Throws what make_tensor() throws, and invalid_file where the parts do not fit each other.
Tensor make_sparse(const SparseProto& proto, const SourcePtr& source, ExternalFiles& files);

}  // namespace poise::onnx
