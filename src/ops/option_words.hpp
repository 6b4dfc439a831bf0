// Names of conversion options for the command and Python, and what errors list as expected.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/convert.hpp>

namespace poise {

// Sets the type or recipe: "group4", "q4_k", "Q4_K_M", in either case. False if the text names none.
bool set_quantization(ConvertOptions& options, std::string_view text);
std::string quantization_choices();
std::vector<std::string> quantization_names();
// The types among them, without recipes.
std::string code_type_choices();

// The floating-point types to which tensors are cast, by Poise's names and those of NumPy and PyTorch: "f16", "fp16",
// "float16", "half", ..., in either case.
std::optional<DType> cast_type_from(std::string_view text);

// The type of ConvertOptions::Keep: the same without recipes, plus "f32", "f16", "bf16".
std::optional<StoredType> kept_type_from(std::string_view text);
std::string kept_type_choices();

// The sizes that is_group_size() accepts.
std::string group_size_choices(const Groups& groups);

// "zstd", with the default level, or "zstd:LEVEL".
std::optional<int> zstd_level_from(std::string_view text);

}  // namespace poise
