// safetensors: a JSON header, then the tensors' bytes. Read strictly (formats.md section 5), written aligned.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kSafetensors;

// Appends one file's tensors to a model, as reading a sharded model needs; `__metadata__` goes to model.attributes.
void read_safetensors_into(Model& model, const SourcePtr& source);

}  // namespace poise
