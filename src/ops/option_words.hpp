// Parses and lists the values of conversion options for the command and Python.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/convert.hpp>

namespace poise {

// Sets the type or recipe: "group4", "q4_k", "Q4_K_M", in upper or lower case. "auto" sets an empty budget, whose
// fields other options set. Returns false if the text is not one of these.
bool set_quantization(ConvertOptions& options, std::string_view text);
// Returns the texts that set_quantization() accepts, as a phrase for help and messages.
std::string format_quantization_choices();
// Returns the same texts as single words, without group sizes.
std::vector<std::string> list_quantization_names();
// Returns a phrase with the types that set_quantization() accepts, without recipes.
std::string format_code_types();

// Parses a floating-point type to which tensors are cast, by Poise's name or those of NumPy and PyTorch: "f16", "fp16",
// "float16", "half", ..., in upper or lower case.
std::optional<DType> parse_cast_type(std::string_view text);

// Parses a type for ConvertOptions::Keep: a type of codes, or one that parse_cast_type() accepts; not a recipe.
std::optional<StoredType> parse_kept_type(std::string_view text);
std::string format_kept_types();

// Returns a phrase with the sizes that is_group_size() accepts.
std::string format_group_sizes(const Groups& groups);

// Parses "zstd", with the default level, or "zstd:LEVEL".
std::optional<int> parse_zstd_level(std::string_view text);

}  // namespace poise
