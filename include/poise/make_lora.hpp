// make_lora: makes LoRA adapters from two models, and converts adapters between PEFT's form and llama.cpp's
// (docs/lora.md). <poise/lora.hpp> merges them.
//
//   poise::extract_lora("base/", "tuned/", "adapter/", {.rank = 32});
//   poise::convert_lora("adapter/", "adapter.gguf", {.base = "base/"});
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <poise/format.hpp>
#include <poise/tensor.hpp>

namespace poise {

struct ExtractLoraOptions {
  std::uint64_t rank = 16;  // of the product for each matrix, limited to the matrix's shorter side
  // Shell patterns of tensors to look at and to leave out, as in ConvertOptions. `only` empty: all.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};
  std::string format = {};  // "huggingface", "safetensors", "gguf", ...; empty: as save() chooses it
  bool verify = true;       // checks the inputs' digests
  bool dry_run = false;     // computes everything and writes no file
  ReadOptions read = {};
  WriteOptions write = {};
};

// Describes a matrix that the adapter changes.
struct ExtractedMatrix {
  std::string name;
  Shape shape;
  std::uint64_t rank = 0;
  double rms = 0;       // of the difference between the two models
  double captured = 0;  // the share of the difference's sum of squares that the product has: 0 to 1
};

struct ExtractLoraReport {
  std::string format;
  std::filesystem::path output;           // empty for a dry run
  std::vector<ExtractedMatrix> matrices;  // in the base's order
  double captured = 1;                    // of all these matrices together
  std::size_t equal = 0;                  // tensors that are equal in both models
  std::vector<std::string> warnings;      // what differs and is not in the adapter, one sentence each
  std::vector<std::string> losses;        // what the output's format cannot hold
  std::uint64_t bytes_out = 0;
  double seconds = 0;  // of wall time
};

// Writes an adapter that changes `base` into about `tuned`: for each matrix, a product of the given rank that is close
// to the difference, by a randomized, truncated singular value decomposition. In GGUF the adapter has llama.cpp's form,
// in other formats PEFT's. Keeps the thin matrices of one matrix at a time in memory. Throws what open() and save()
// throw; bad_argument for a rank outside 1 to 65536, an input that is an adapter or a delta, a pattern that matches no
// tensor, models without a common tensor, and models that differ in nothing that an adapter can hold; invalid_file for
// a wrong digest and for a difference that does not fit float32; cancelled. If it throws, no output appears.
ExtractLoraReport extract_lora(const std::filesystem::path& base, const std::filesystem::path& tuned,
                               const std::filesystem::path& output, const ExtractLoraOptions& options = {});

struct ConvertLoraOptions {
  // The model that the adapter was trained for, a directory with its config.json, or that file. Empty: the one that the
  // adapter names, by a path or by ORG/NAME in the Hub's cache.
  std::filesystem::path base = {};
  std::string format = {};  // as in ExtractLoraOptions
  bool dry_run = false;     // checks everything and writes no file
  ReadOptions read = {};
  WriteOptions write = {};
};

struct ConvertLoraReport {
  std::string format;
  std::filesystem::path output;       // empty for a dry run
  std::size_t matrices = 0;           // the number of matrices that the adapter changes
  std::vector<std::string> warnings;  // about the adapter
  std::vector<std::string> losses;    // what the output's format cannot hold
  std::uint64_t bytes_out = 0;
};

// Writes an adapter in another form: in GGUF that of llama.cpp, in other formats that of PEFT. The names, the order of
// rows, and which thin matrix is A, follow from the base's configuration. Throws what open() and save() throw;
// bad_argument for an adapter that has the form already, and without a base; invalid_file, listing the adapter's
// faults; unsupported for kinds of adapters that with_lora() does not merge, for whole tensors, and for matrices that
// have no name in the output's form.
ConvertLoraReport convert_lora(const std::filesystem::path& adapter, const std::filesystem::path& output,
                               const ConvertLoraOptions& options = {});

}  // namespace poise
