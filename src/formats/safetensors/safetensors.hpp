// safetensors: a JSON header, then the tensors' bytes. Read strictly (docs/formats/safetensors.md), written aligned.
#pragma once

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"

namespace poise {

extern const Format kSafetensors;

// Gives a file's tensors in the order of their bytes; returns its `__metadata__`. What `take` throws without an offset gets that of the
// tensor in the header. Throws invalid_file, unsupported, io.
Attributes read_safetensors(const SourcePtr& source, FunctionRef<void(Tensor)> take);

}  // namespace poise
