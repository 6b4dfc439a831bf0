// Writes a vocabulary as Hugging Face's tokenizer.json: the inverse of tokenizer_json.cpp.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Writes every field that Hugging Face's library requires, and lists merges that follow from scores. Appends what the
// file leaves out to `losses`, one sentence each. Throws unsupported for what the file cannot hold, invalid_file for an
// inconsistent pipeline. Requires: a kind of pipeline.
std::string write_tokenizer_json(const Vocabulary& vocabulary, std::vector<std::string>& losses);

// Returns tokenizer_config.json: special tokens by their texts, the chat template, the longest sequence, the class of
// transformers. If the vocabulary was read with such a file, keeps its keys and values, except those that contradict
// the vocabulary's tokens.
Attributes make_tokenizer_config(const Vocabulary& vocabulary);

// Clears Vocabulary::tokenizer_config if the file written without it has the same content.
void drop_usual_config(Vocabulary& vocabulary);

// Returns the part of Vocabulary::tokenizer_config that neither the vocabulary's tokens nor the file written without it
// contain.
Attributes find_config_besides_tokens(const Vocabulary& vocabulary);

}  // namespace poise
