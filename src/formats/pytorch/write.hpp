// Writes the zip archive that torch.load(weights_only=True) loads: an OrderedDict of tensors.
#pragma once

#include "formats/format.hpp"

namespace poise::pytorch {

FilePlan plan(const Model& model, const WriteOptions& options);
void write(const Model& model, Output& output, const WriteOptions& options);
std::vector<std::string> losses(const Model& model, const WriteOptions& options);

}  // namespace poise::pytorch
