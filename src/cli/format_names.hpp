// Help about formats, from their rows.
#pragma once

#include <string>

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"

namespace poise::cli {

// "Formats:" and a line for each.
std::string format_list();

// "zt, zt1": the formats for which `is_meant` is true.
std::string format_names(FunctionRef<bool(const Format&)> is_meant);

// "zt: at least 4096, default 65536; gguf: ...": each format's alignment of parts.
std::string alignments();

}  // namespace poise::cli
