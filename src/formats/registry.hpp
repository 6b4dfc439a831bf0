// ALT ("Altiera") model files: version 2, and its predecessor version 1. docs/formats/alt.md describes both.
#pragma once

#include "formats/format.hpp"

namespace poise {

// They share the extension .alt; writing a file of that name means version 2.
extern const Format kAltV2;
extern const Format kAltV1;

// Parameters of Flax (docs/formats/flax.md): flax_model.msgpack.

extern const Format kFlax;

// GGUF: the files of llama.cpp and what is built on it.

extern const Format kGguf;

// A Hugging Face model directory: config.json, safetensors (one file, or shards with an index), tokenizer.model,
// README.md.

extern const Format kHuggingFace;

// Weights of llama2.c, with its tokenizer.bin (docs/formats/llama2c.md).

extern const Format kLlama2c;

// NumPy's files: one array (.npy), and a zip archive of arrays (.npz).

extern const Format kNpy;
extern const Format kNpz;

// ONNX models, as far as they hold tensors (docs/formats/onnx.md).

extern const Format kOnnx;

// Checkpoints of PyTorch (docs/formats/pytorch.md): no code of a file is ever run.

extern const Format kPytorch;

// The Tiny Llama weight file (.tllm): a header of seven numbers and float32 arrays.

extern const Format kTinyLlamaFormat;

}  // namespace poise
