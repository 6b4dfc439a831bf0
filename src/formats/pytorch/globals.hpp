// The functions and classes that checkpoints of PyTorch name, and what others would do if Python called them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/dtype.hpp>

#include "syntax/pickle.hpp"

namespace poise::pytorch {

// "torch.FloatStorage"
std::string full_name(const pickle::Global& global);

// The element type of "torch.FloatStorage", of "torch.float16". Untyped storages are of u8. Nothing for other names,
// and for types that Poise does not have.
std::optional<DType> storage_dtype(std::string_view name);
std::optional<DType> named_dtype(std::string_view name);
// The names that are written, empty for types whose tensors no version of PyTorch loads from typed storages.
std::string_view storage_name(DType dtype);

// Does a checkpoint need this to be loaded, and is it harmless in any arguments? All that such files usually name.
bool is_expected(std::string_view name);

// What a function or class that is_expected() does not know is, for people: "runs commands", "imports modules", ...;
// empty where nothing is known of it.
std::string_view danger_of(std::string_view name);

}  // namespace poise::pytorch
