// Names of the files in a Hugging Face directory.
#pragma once

#include <string_view>

namespace poise::huggingface {

inline constexpr std::string_view kConfig = "config.json";
inline constexpr std::string_view kGeneration = "generation_config.json";
inline constexpr std::string_view kSingle = "model.safetensors";
inline constexpr std::string_view kIndex = "model.safetensors.index.json";
inline constexpr std::string_view kReadme = "README.md";

}  // namespace poise::huggingface
