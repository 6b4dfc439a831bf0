// general.file_type: what llama.cpp calls the types of a file's tensors together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace poise::gguf {

// The name of a number: that of Poise's recipe where there is one ("q4_k_m"), "llama_ftype 43" for one that Poise does
// not know.
std::string file_type_name(std::uint32_t number);

// A matrix of a file: its name there, and its type by number.
struct TypedMatrix {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t elements;
};

// The number of the recipe that the model says it was made by; what the matrices look like where it says none, or one
// without a number. Nothing where llama.cpp has no number for the type of most: it then looks at the tensors itself.
std::optional<std::uint32_t> file_type_of(std::span<const TypedMatrix> matrices, std::string_view recipe);

}  // namespace poise::gguf
