// The tokenizer sections of both versions of ALT.
#pragma once

#include <optional>
#include <string_view>

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Reads the section to its end, padding included. Requires: the reader is past section_size. Nothing when the section
// has no tokens and no ids: a model without vocabulary.
std::optional<Vocabulary> read_tokenizer_v2(FileReader& reader, const OpenSection& section);
std::optional<Vocabulary> read_tokenizer_v1(FileReader& reader, const OpenSection& section);

// The type of a token of version 1, which stores none, by its text and its vocabulary's ids.
TokenType type_from_text(const Vocabulary& vocabulary, std::string_view text, std::int32_t id);

// The score that is written for a token. Throws unsupported for NaN, which readers reject.
float written_score(const Vocabulary& vocabulary, std::size_t id);

}  // namespace poise::alt
