// The tensors sections of both versions of ALT: metadata, then data, tensor by tensor. Skips data without reading it.
#pragma once

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Reads the fields into a model. Requires: the reader is past section_size. Leaves it past the last tensor.
void read_tensors_v2(FileReader& reader, const SourcePtr& source, Model& model);
void read_tensors_v1(FileReader& reader, const SourcePtr& source, Model& model);

}  // namespace poise::alt
