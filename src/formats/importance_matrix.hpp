// Finds the weights for quantizing in importance matrices. read_imatrix() of <poise/imatrix.hpp> reads all their
// numbers.
//
// GGUF files have tensors "<name>.in_sum2" [matrices, columns] and "<name>.counts" [matrices]. The older format: i32
// number of entries; for each entry i32 length, name, i32 calls, i32 number of values, f32 values. Later files of the
// older format end with i32 chunks, i32 length, name of the data set. Source: llama.cpp's tools/imatrix, v0.5.0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

// Names an entry of an importance matrix, and the matrix of one expert in it.
struct ImportancePlace {
  std::string entry;
  std::size_t expert = 0;
};

// Returns the place of a tensor's weights. The entry has llama.cpp's name of the tensor; std::nullopt if llama.cpp has
// no name for it. `model_type` is that of the tensor's model.
std::optional<ImportancePlace> find_importance_place(std::string_view tensor, std::string_view model_type);

class ImportanceMatrix {
 public:
  // Reads a file. Throws not_found, io, and invalid_file for a file that is not an importance matrix, or whose numbers
  // are negative or not finite.
  explicit ImportanceMatrix(const std::filesystem::path& path);

  // Returns the weights for a tensor of a model of that type, by its name in Poise; null if the file has none. Takes an
  // expert's weights from those of a stack. Throws invalid_file unless there are `columns` weights, or `columns` for
  // each of the `matrices` stacked in a tensor.
  std::shared_ptr<const std::vector<float>> find_weights(std::string_view tensor, std::string_view model_type,
                                                         std::size_t columns, std::size_t matrices = 1) const;

  // Returns the attributes that llama-quantize records in its files: quantize.imatrix.file (the name without
  // directories), quantize.imatrix.entries_count, and, if the file states them, .dataset and .chunks_count.
  const Attributes& provenance() const { return provenance_; }

 private:
  std::string path_;
  Attributes provenance_;
  std::map<std::string, std::shared_ptr<const std::vector<float>>, std::less<>> weights_;  // the keys are GGUF's names
};

}  // namespace poise
