// general.file_type: llama.cpp's name for the types of a file's tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace poise::gguf {

// The name of a number: that of Poise's recipe ("q4_k_m"), or "llama_ftype 43" for an unknown one.
std::string file_type_name(std::uint32_t number);

// A matrix of a file: its name and the number of its type.
struct TypedMatrix {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t elements;
};

// The number of the recipe that the model was made by; without one, or one without a number, by what the matrices look
// like. Nothing if llama.cpp has no number for the most frequent type: it then looks at the tensors itself.
std::optional<std::uint32_t> file_type_of(std::span<const TypedMatrix> matrices, std::string_view recipe);

}  // namespace poise::gguf
