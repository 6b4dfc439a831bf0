// Writes a Hugging Face directory (docs/formats/huggingface.md).
#pragma once

#include <memory>
#include <string>

#include "formats/format.hpp"

namespace poise::huggingface {

std::unique_ptr<PreparedFile> prepare(const Model& model, const WriteOptions& options);

// Why a model must not replace a directory with files of these names; empty if it may.
std::string refusal_to_replace(const MemberNames& names);

}  // namespace poise::huggingface
