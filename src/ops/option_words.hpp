// Words for the options of a conversion, as the command and Python take them, and what an error says was expected.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/convert.hpp>

namespace poise {

// What tensors become: "group4", "q4_k" or a recipe, "Q4_K_M"; capitals are small letters. False: the text names none.
bool set_quantization(ConvertOptions& options, std::string_view text);
std::string quantization_choices();
// The types among them, without recipes.
std::string code_type_choices();

// The type of ConvertOptions::Keep: the same without recipes, and "f32", "f16", "bf16".
std::optional<StoredType> kept_type_from(std::string_view text);
std::string kept_type_choices();

// The sizes that is_group_size() takes.
std::string group_size_choices(const Groups& groups);

// "zstd", whose level is the usual one, or "zstd:LEVEL".
std::optional<int> zstd_level_from(std::string_view text);

}  // namespace poise
