// Runs of one script, as SentencePiece cuts text for training: tokenizer.json's pre-tokenizer UnicodeScripts.
#pragma once

#include <string>

namespace poise {

// A regular expression that matches the runs. Hiragana, Katakana and U+30FC count as Han. Spaces and characters without
// a script belong to the run before them; without one, nothing matches them.
std::string script_runs();

}  // namespace poise
