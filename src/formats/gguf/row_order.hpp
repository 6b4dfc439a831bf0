// Converts rows of rotated matrices between llama.cpp's order and that of transformers.
//
// In each head of n rows, transformers' row t * n / 2 + j is llama.cpp's row 2 j + t (t: 0 or 1).
#pragma once

#include <cstdint>
#include <optional>

#include <poise/blob.hpp>

namespace poise::gguf {

enum class RowOrderOf : std::uint8_t { llama_cpp, transformers };

// Rows of one head; nothing if the rows do not divide into heads of an even number of rows.
std::optional<std::uint64_t> rows_of_head(std::uint64_t rows, std::uint64_t heads);

// The rows in the order `to`, from the other one. Requires: the blob is whole heads of `head_rows` rows of `row_bytes`;
// head_rows is even.
HeldBlob reorder_rows(HeldBlob blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrderOf to);

}  // namespace poise::gguf
