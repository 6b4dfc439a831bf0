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

// tokenizer_config.json: special tokens by their texts, the chat template, the longest sequence. `tokenizer_class` is
// that of transformers.
std::string write_tokenizer_config(const Vocabulary& vocabulary, std::string_view tokenizer_class);

}  // namespace poise
