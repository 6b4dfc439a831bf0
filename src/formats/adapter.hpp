// Adapter: low-rank changes of a model's matrices (LoRA), which files of some formats hold instead of a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "views/low_rank.hpp"

namespace poise {

// PEFT's description of an adapter, and the attribute that has its object; in files whose attributes are texts, as
// JSON.
inline constexpr std::string_view kAdapter = "adapter_config.json";
inline constexpr std::string_view kAdapterConfig = "adapter_config";

// Opens a file or directory that may be an adapter. A file next to PEFT's description is the adapter that this
// describes, even in the directory of a model. Throws what open() throws.
Model open_adapter(const std::filesystem::path& path);

// Describes the change of one matrix. Both thin matrices hold numbers, and their ranks agree.
struct AdaptedMatrix {
  std::string file_name;  // as the file calls the matrix, for messages
  std::string name;       // of the model's tensor, in the spelling of its family's table
  LowRank change;

  std::uint64_t rank() const { return change.right.shape[0]; }
  // Returns the shape of the matrix that it fits. The product of its dimensions may exceed 64 bits.
  Shape shape() const {
    Shape product{change.left.shape[0], change.right.shape[1]};
    if (change.transposed) std::swap(product[0], product[1]);
    return product;
  }
};

struct Adapter {
  std::string base_model;  // the one that it was trained for; empty: the file does not name it
  double alpha = 0;
  bool keeps_ties = false;  // what changes a tied embedding changes the output matrix, too (ensure_weight_tying)
  std::vector<AdaptedMatrix> matrices;
  std::vector<Tensor> whole;            // in place of the model's tensors of these names
  std::vector<std::string> faults;      // a sentence each, up to a thousand: what the file has wrong
  std::vector<std::string> refusals;    // what it has that Poise does not follow
  std::vector<std::string> deviations;  // where other programs, or the file itself, differ
};

// Returns the adapter that a file is, by its own format; std::nullopt for a model. With the model that it is to change,
// its names are that model's, and its rows in the order of that model's; without, they stay the file's.
std::optional<Adapter> parse_adapter(const Model& file, const Model* base);

// Returns a summary for people and scripts: {"kind": "lora", "rank": 8, "alpha": 16.0, "targets": ["q_proj"],
// "base_model": "..."}.
Attributes summarize_adapter(const Adapter& adapter);

// Returns the findings of verify() about a file that may be an adapter.
std::vector<Finding> check_adapter(const Model& file);

// Collects the thin matrices of one adapted matrix while tensors come in any order.
struct ThinMatrices {
  const Tensor* left = nullptr;   // B: [rows, rank]
  const Tensor* right = nullptr;  // A: [rank, columns]

  // Returns the reason why they are not a pair, with these names in the message; std::nullopt if they are one.
  std::optional<std::string> find_fault(std::string_view left_name, std::string_view right_name) const;
};

}  // namespace poise
