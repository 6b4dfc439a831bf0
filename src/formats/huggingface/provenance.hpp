// Where a Hugging Face model comes from: its card, and an id made from its content.
#pragma once

#include <filesystem>
#include <string>

#include <poise/model.hpp>

namespace poise {

// Names, license and dates from config.json, the README's front matter, the directory's name and its weight files
// (formats.md section 5). SOURCE_DATE_EPOCH replaces the files' dates.
Card read_card(const Attributes& config, const std::string& readme, const std::filesystem::path& directory);

// A version 8 UUID (RFC 9562) made from the SHA-256 of configuration, vocabulary and tensors: their names, shapes, types,
// and the first and last 4 KiB of their bytes. The same model gives the same id, however its files are split.
std::string content_uuid(const Model& model);

}  // namespace poise
