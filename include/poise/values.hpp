// values: reads the numbers of tensors of any layout and element type, and makes tensors of numbers.
//
//   const poise::Model model = poise::open("model.alt");
//   const std::vector<float> norm = poise::values(*model.find("model.norm.weight"));
//
//   poise::Model made;
//   made.add(poise::make_tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6}));
//   poise::save(made, "w.safetensors");
//
//   const poise::Tensor codes = poise::quantized(made.tensors()[0], *poise::stored_type_from_name("q4_k"));
//   const std::vector<float> decoded = poise::values(codes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poise/error.hpp>
#include <poise/progress.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Returns all elements as float32 in row-major order. Decodes other floating-point types, codes with scales, and sparse
// tensors. Throws unsupported, naming the tensor and its storage, for integers, booleans, complex numbers and layouts
// that are not decoded, and for a finite number that float32 cannot hold; and what reading the blobs throws.
std::vector<float> values(const Tensor& tensor);

// Reads elements [first, first + out.size()). Throws what values() throws; bad_argument when the tensor has fewer. Each
// call reads a sparse tensor again from its start: read many elements per call.
void read_values(const Tensor& tensor, std::uint64_t first, std::span<float> out);

// Returns a dense f32 tensor that owns the given elements, in row-major order. Throws bad_argument when their number
// does not fit the shape.
Tensor make_tensor(std::string name, Shape shape, const std::vector<float>& elements);

// Quantizes the elements as convert() does, and returns a tensor that owns the codes. Throws bad_argument for a type
// without codes; unsupported, naming the tensor, for elements that values() rejects or that are not finite, and for
// rows that are not whole blocks or groups; cancelled when `progress`, which counts bytes of codes, returns false; and
// what reading the blobs throws.
Tensor quantized(const Tensor& tensor, const StoredType& type, const Progress& progress = {});

// Returns a tensor of ggml's blocks from another program, row after row. `type` is the blocks' name: "q4_k". Throws
// bad_argument for other types, for rows that are not whole blocks, and for a number of bytes that does not fit the
// shape.
Tensor make_block_tensor(std::string name, Shape shape, std::string_view type, std::vector<std::byte> blocks);

}  // namespace poise
