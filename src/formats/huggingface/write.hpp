// Writes a Hugging Face directory (docs/formats/huggingface.md).
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise::huggingface {

void write(const Model& model, Output& output, const WriteOptions& options);
FilePlan plan(const Model& model, const WriteOptions& options);
std::vector<std::string> losses(const Model& model, const WriteOptions& options);

// Why a directory with files of these names is not to be replaced by a model; empty: it may be.
std::string why_kept(const MemberNames& names);

}  // namespace poise::huggingface
