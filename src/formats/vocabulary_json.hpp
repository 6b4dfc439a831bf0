// A vocabulary as a JSON object: the value of the attribute "poise.vocabulary" (docs/formats/ztensor.md).
#pragma once

#include <string>
#include <string_view>

#include <poise/model.hpp>

namespace poise {

// Scores that JSON lacks become the texts "inf", "-inf" and "nan"; texts of tokens that are not UTF-8 become
// hexadecimal digits. Throws unsupported for more than kMaxMerges merges, and for other numbers that are not finite.
std::string vocabulary_json(const Vocabulary& vocabulary);

// The inverse. Errors name `attribute` and `path`, the model's file. Throws invalid_file.
Vocabulary parse_vocabulary_json(std::string_view json, std::string_view attribute, const std::string& path);

}  // namespace poise
