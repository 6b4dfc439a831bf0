// Writing both versions of ALT.
#pragma once

#include "formats/format.hpp"

namespace poise::alt {

void write_v2(const Model& model, Output& output, const WriteOptions& options);

// The type a token is written with: bos_id, eos_id and pad_id get types of their own, unless the token is a byte, unknown,
// unused or user-defined one.
TokenType written_type(const Vocabulary& vocabulary, std::size_t id);

}  // namespace poise::alt
