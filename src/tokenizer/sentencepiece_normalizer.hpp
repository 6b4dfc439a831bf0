// The rules of SentencePiece's normalizer, which a vocabulary keeps in its pipeline: {"normalizer": {"type": "Precompiled",
// "precompiled_charsmap": base64}}.
#pragma once

#include <string>
#include <string_view>

#include <poise/model.hpp>

namespace poise {

// The bytes of the charsmap; empty: there are none. Throws unsupported for another normalizer, and invalid_file for what is no base64.
std::string normalizer_rules(const Vocabulary& vocabulary);
// Requires: rules are not empty.
void set_normalizer_rules(Vocabulary& vocabulary, std::string_view rules);

}  // namespace poise
