// safetensors: a JSON header, then the tensors' bytes. Read strictly (docs/formats/safetensors.md), written aligned.
#pragma once

#include <deque>

#include "formats/format.hpp"

namespace poise {

extern const Format kSafetensors;

// One file's `__metadata__` and its tensors in the order of their bytes. Throws invalid_file, unsupported, io.
struct SafetensorsFile {
  Attributes metadata;
  std::deque<Tensor> tensors;
};
SafetensorsFile read_safetensors(const SourcePtr& source);

}  // namespace poise
