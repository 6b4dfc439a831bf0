// llama.cpp's adapters: files with general.type "adapter" and adapter.type "lora". Of each matrix X of the model there
// are
//
//   X.lora_a   [rank, columns]        of token_embd.weight: [tokens, rank]
//   X.lora_b   [rows, rank]           of token_embd.weight: [width, rank]
//
// in the order of rows that llama.cpp has, and other tensors replace the model's. The change is alpha / rank * B A; an
// adapter.lora.alpha of 0, or none, counts as rank. Of stacked experts both have one more dimension in front.
//
// Source: llama.cpp's convert_lora_to_gguf.py, src/llama-adapter.cpp and llm_graph_context::build_lora_mm().
#pragma once

#include "formats/adapter.hpp"

namespace poise::gguf {

// See adapter_in().
std::optional<Adapter> adapter(const Model& file, const Model* base);

}  // namespace poise::gguf
