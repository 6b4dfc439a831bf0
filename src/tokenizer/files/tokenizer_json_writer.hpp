// A vocabulary as Hugging Face's tokenizer.json: the way back from tokenizer_json.hpp.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// The file has every field that Hugging Face's library wants, whichever of them the pipeline has; merges that follow
// from scores are listed. Appends what it leaves out to `losses`, one sentence each. Throws unsupported for what the
// file cannot hold, invalid_file for a pipeline that contradicts itself. Requires: a kind of pipeline.
std::string write_tokenizer_json(const Vocabulary& vocabulary, std::vector<std::string>& losses);

// tokenizer_config.json: special tokens by their texts, the chat template, the longest sequence, the
// class of transformers. Where the vocabulary was read with such a file, its keys and values, but for those that say
// something else of the tokens than the vocabulary does.
Attributes tokenizer_config_of(const Vocabulary& vocabulary);

// Empties Vocabulary::tokenizer_config where it says no more than the file that would be written without it.
void drop_usual_config(Vocabulary& vocabulary);

// Of Vocabulary::tokenizer_config what the rest of the vocabulary does not say: neither its tokens nor the file that
// would be written without it.
Attributes config_beside_tokens(const Vocabulary& vocabulary);

}  // namespace poise
