// The dialect of alt.c: what its Python converter writes, so that its C reader loads it. Metadata only, no tensors.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"
#include "io/sink.hpp"

namespace poise::alt {

// Throws bad_argument for a dialect that does not exist, listing those that do.
bool is_for_alt_c(const WriteOptions& options);

// Throws unsupported for what the C reader refuses: no configuration, no vocabulary or one of more than 32000 tokens,
// and tokens that are empty or come twice.
void write_alt_c(const Model& model, Sink& sink);

// The general section's texts that are empty: the C reader refuses empty texts, so they are written as "unknown".
std::vector<std::string> unknown_to_alt_c(const Card& card);

}  // namespace poise::alt
