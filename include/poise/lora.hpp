// lora: merges low-rank adapters into the model that they were trained for.
//
// An adapter is a directory in PEFT's form, or a GGUF file in the form of llama.cpp's convert_lora_to_gguf.py, with two
// thin matrices for each matrix that it changes:
//
//   weight + scale * alpha / rank * B A        (alpha / sqrt(rank) with use_rslora)
//
//   const poise::LoraAdapter adapter{.path = "adapter/"};
//   const poise::Model merged = poise::with_lora(poise::open("base/"), {&adapter, 1});
#pragma once

#include <filesystem>
#include <span>

#include <poise/model.hpp>

namespace poise {

struct LoraAdapter {
  std::filesystem::path path;  // the path of the directory, of adapter_model.safetensors in it, or of a GGUF file
  double scale = 1;            // multiplies the adapter's own scale
};

// Returns the model with adapters merged, in order. Reading a merged matrix computes it row by row. Sums are float32,
// or float64 for a matrix of float64. A dense matrix then gets its own type; other matrices stay float32 (convert()
// gives them their own type, too). Tensors that an adapter stores whole (modules_to_save, biases) replace the model's.
// If embeddings are tied and an adapter changes the embedding, only the input side changes: the output matrix becomes a
// separate tensor, with a warning. With ensure_weight_tying, both sides change. Throws not_found and invalid_file for
// an unreadable adapter; unsupported for unknown kinds (DoRA); invalid_file, listing everything in the adapter that
// does not fit the model; bad_argument for a scale that is not finite.
Model with_lora(const Model& model, std::span<const LoraAdapter> adapters);

}  // namespace poise
