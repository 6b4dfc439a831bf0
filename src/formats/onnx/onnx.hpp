// Reads a ModelProto: its initializers, and the tensors of its constants.
#pragma once

#include "formats/format.hpp"

namespace poise::onnx {

// Returns true if the source is a ModelProto with a graph. Looks only at the fields of the outermost message.
bool is_model(const SourcePtr& source);

Model read(const Input& input, const ReadOptions& options);

}  // namespace poise::onnx
