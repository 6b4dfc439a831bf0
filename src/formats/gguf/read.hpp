// Reads GGUF: versions 1 to 3, either byte order, whole or split into several files.
#pragma once

#include "formats/format.hpp"

namespace poise::gguf {

Model read(const Input& input, const ReadOptions& options);

// From "model-00002-of-00003.gguf" the name of another part of the same model. Nothing if the name is not a part's, or
// has the wrong number.
std::string split_name(const std::string& prefix, std::uint64_t number, std::uint64_t count);
std::optional<std::string> split_prefix(const std::string& name, std::uint64_t number, std::uint64_t count);

}  // namespace poise::gguf
