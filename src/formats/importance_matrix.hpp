// ImportanceMatrix: how much the output of a model depends on each column of its matrices.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

class ImportanceMatrix {
 public:
  virtual ~ImportanceMatrix() = default;

  // Returns the weights for a tensor of a model of that type, by its name in Poise; null if the file has none. Throws
  // invalid_file unless there are `columns`, or that many for each of the `matrices` stacked in a tensor.
  virtual std::shared_ptr<const std::vector<float>> weights(std::string_view tensor, std::string_view model_type,
                                                            std::size_t columns, std::size_t matrices = 1) const = 0;

  // Attributes that files of tensors quantized with it record.
  virtual const Attributes& provenance() const = 0;
};

// Throws not_found, io, and invalid_file for other files, and for numbers that are negative or not finite.
std::unique_ptr<const ImportanceMatrix> open_importance_matrix(const std::filesystem::path& path);

}  // namespace poise
