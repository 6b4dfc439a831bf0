// The tokenizer sections of both versions of ALT.
#pragma once

#include <optional>
#include <string_view>

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Reads the section to its end, padding included. Requires: the reader is past section_size. Nothing when the section
// is a model without vocabulary: no tokens, and no ids.
std::optional<Vocabulary> read_tokenizer_v2(FileReader& reader, const OpenSection& section);
std::optional<Vocabulary> read_tokenizer_v1(FileReader& reader, const OpenSection& section);

// The type that a token of version 1, which stores none, has by its text and by the ids of its vocabulary.
TokenType type_from_text(const Vocabulary& vocabulary, std::string_view text, std::int32_t id);

// The type a token is written with: bos_id, eos_id and pad_id get types of their own, unless the token is a byte,
// unknown, unused or user-defined one.
TokenType written_type(const Vocabulary& vocabulary, std::size_t id);

// The score a token is written with. Throws unsupported for one that is NaN, which readers refuse.
float written_score(const Vocabulary& vocabulary, std::size_t id);

}  // namespace poise::alt
