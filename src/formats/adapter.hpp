// An Adapter has low-rank changes of a model's matrices (LoRA), which files of some formats hold instead of a model.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "views/low_rank.hpp"

namespace poise {

// PEFT describes an adapter in the file kAdapter. The attribute kAdapterConfig holds the content of this file, as an
// object or as JSON text.
inline constexpr std::string_view kAdapter = "adapter_config.json";
inline constexpr std::string_view kAdapterConfig = "adapter_config";

// Opens a file or directory that may be an adapter. If adapter_config.json is next to the file, its text becomes the
// attribute kAdapterConfig, even in a model's directory. Throws what open() throws.
Model open_adapter(const std::filesystem::path& path);

// Describes the change of one matrix. Both thin matrices hold numbers, and their ranks agree.
struct AdaptedMatrix {
  std::string file_name;  // the file's name of the matrix, for messages
  std::string name;       // the name of the model's tensor, in any spelling of its family
  LowRank change;

  std::uint64_t rank() const { return change.right.shape[0]; }
  // Returns the shape of the matrix that the change is added to. The product of its dimensions may exceed 64 bits.
  Shape shape() const {
    Shape product{change.left.shape[0], change.right.shape[1]};
    if (change.transposed) std::swap(product[0], product[1]);
    return product;
  }
};

// Returns scale * rank, the alpha of a matrix: programs multiply the product of its thin matrices by alpha / rank. The
// result is rounded to the shortest decimal number with the same float32 value, unless it exceeds float32.
double compute_alpha(const AdaptedMatrix& matrix);

struct Adapter {
  std::string base_model;  // the model that it was trained for; empty: the file does not name one
  double alpha = 0;
  bool keeps_ties = false;  // a change of a tied embedding also changes the output (ensure_weight_tying)
  std::vector<AdaptedMatrix> matrices;
  std::vector<Tensor> whole;            // replace the model's tensors of these names
  std::vector<std::string> faults;      // errors in the file, one sentence each, at most 1000
  std::vector<std::string> refusals;    // settings that Poise does not support
  std::vector<std::string> deviations;  // warnings that other programs differ, or that the file contradicts itself
};

// Returns the adapter in a file; std::nullopt if the file is a model. `base` is the model to change: the adapter gets
// its names and order of rows. Null: the adapter keeps those of the file.
std::optional<Adapter> parse_adapter(const Model& file, const Model* base);

struct Format;

// Describes a form of adapters: the names of their tensors, and where they keep alpha.
struct AdapterForm {
  std::string_view name;    // the program whose form it is: "PEFT", "llama.cpp"
  std::string_view format;  // the format whose function read_adapter recognizes it
  // Returns a model that holds the adapter in this form. `base` needs a configuration, but no tensors. Throws
  // unsupported (without path) for an adapter that the form cannot hold.
  Model (*make)(const Adapter& adapter, const Model& base);
};

// registry.cpp has the rows.
extern const std::array<AdapterForm, 2> kAdapterForms;

// Returns the form of a file's adapter; null if the file is a model.
const AdapterForm* find_adapter_form(const Model& file);
// Returns the form that an adapter has in files of a format: llama.cpp's in GGUF, PEFT's in the others.
const AdapterForm& choose_adapter_form(const Format& target);

// Returns a summary for people and scripts: {"kind": "lora", "alpha": 16.0, "rank": 8, "targets": ["q_proj"],
// "matrices": 24, "base_model": "..."}. If ranks differ, "rank" is a list.
Attributes summarize_adapter(const Adapter& adapter);

// Returns the findings of verify() about a file that may be an adapter.
std::vector<Finding> check_adapter(const Model& file);

// Collects the thin matrices of one adapted matrix while tensors come in any order.
struct ThinMatrices {
  const Tensor* left = nullptr;   // B: [rows, rank]
  const Tensor* right = nullptr;  // A: [rank, columns]

  // Returns why the two do not fit together, with these names in the message; std::nullopt if they do.
  std::optional<std::string> find_fault(std::string_view left_name, std::string_view right_name) const;
};

}  // namespace poise
