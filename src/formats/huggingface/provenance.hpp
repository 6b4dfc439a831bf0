// The origin of a Hugging Face model: its card, and an id made from its content.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Names, license and dates from config.json, the README's front matter, the directory's name and the UTC day of the
// newest weight file's modification. SOURCE_DATE_EPOCH replaces that day.
Card read_card(const Attributes& config, const std::string& readme, const std::filesystem::path& directory,
               const std::vector<std::filesystem::path>& weights);

// A version 8 UUID (RFC 9562) made from the SHA-256 of configuration, vocabulary and tensors: their names, shapes,
// types, and the first and last 4 KiB of their bytes. The same model gives the same id, however its files are split.
std::string content_uuid(const Model& model);

}  // namespace poise
