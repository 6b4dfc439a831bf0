// The tensors of an ALT v2 file: metadata, then data, one tensor after the other. Data is skipped, never read.
#pragma once

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Reads the fields of the tensors section into a model. Requires: reader is behind the section's size.
void read_tensors_v2(FileReader& reader, const SourcePtr& source, Model& model);

}  // namespace poise::alt
