// Runs of one script, as SentencePiece cuts text while it trains: the pre-tokenizer UnicodeScripts of tokenizer.json.
#pragma once

#include <string>

namespace poise {

// A regular expression whose matches are the runs. Hiragana, Katakana and U+30FC count as Han. Spaces and characters
// without a script belong to the run that they follow; those that follow none are in no match.
std::string script_runs();

}  // namespace poise
