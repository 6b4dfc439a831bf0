// The dialect of alt.c: as its Python converter writes it, so that its C reader loads it. Only metadata, no tensors.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"
#include "io/sink.hpp"

namespace poise::alt {

// Throws bad_argument for an unknown dialect, listing the known ones.
bool is_for_alt_c(const WriteOptions& options);

// Throws unsupported for what the C reader rejects: no configuration, no vocabulary or one of more than 32000 tokens,
// and empty or repeated tokens.
void write_alt_c(const Model& model, Sink& sink);

// The empty texts of the general section: written as "unknown", since the C reader rejects empty texts.
std::vector<std::string> unknown_to_alt_c(const Card& card);

}  // namespace poise::alt
