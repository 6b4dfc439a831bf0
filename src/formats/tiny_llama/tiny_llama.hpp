// Reads and writes Tiny Llama weight files. A file has this layout:
//
//   36 bytes   header: u32 magic, u32 version, i32 model dimension D, layers, heads, FFN hidden dimension F, max
//              sequence length S, vocabulary size V, f32 dropout rate
//   the rest   arrays, in the order of family/tiny_llama.cpp: a matrix is u64 rows, u64 columns, its float32 values row
//              by row; a vector is u64 size, its values
//
// Numbers are little-endian, and there is no padding. The file ends with the last value, so the header implies the
// file's size.
#pragma once

#include <cstdint>
#include <optional>

#include <poise/model.hpp>

#include "formats/format.hpp"

namespace poise::tiny_llama {

inline constexpr std::uint32_t kMagic = 0x544C4C4D;         // the bytes "MLLT" in the file
inline constexpr std::uint32_t kSwappedMagic = 0x4D4C4C54;  // the bytes "TLLM" in the file
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kHeaderBytes = 36;

// Returns the number of bytes before an array's values.
inline std::uint64_t count_dimension_bytes(const Shape& shape) { return shape.size() * sizeof(std::uint64_t); }

// Returns the exact size of the file; std::nullopt if it does not fit 64 bits. Requires: a checked configuration.
std::optional<std::uint64_t> compute_file_size(const Config& config);

// Reads a Tiny Llama weight file. Throws invalid_file. Its message names the field, or the layer and the array, and
// states what was expected and found.
Model read(const Input& input, const ReadOptions& options);

// Writes a Tiny Llama weight file. Throws unsupported, with all faults of tensors, if the file cannot hold the model.
void write(const Model& model, Output& output, const WriteOptions& options);

// Returns the sizes of the file that write() would write. Throws what write() throws.
FilePlan plan(const Model& model, const WriteOptions& options);

// Returns a sentence for each loss of information in the written file.
std::vector<std::string> list_losses(const Model& model, const WriteOptions& options);

}  // namespace poise::tiny_llama
