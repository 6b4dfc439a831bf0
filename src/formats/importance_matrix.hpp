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

  // The weights for a tensor of a model of that type, by its name in Poise; null: the file has none. Throws
  // invalid_file where they are neither `columns` nor that many for each of `matrices`, which a tensor has stacked.
  virtual std::shared_ptr<const std::vector<float>> weights(std::string_view tensor, std::string_view model_type,
                                                            std::size_t columns, std::size_t matrices = 1) const = 0;

  // What files of tensors that are quantized with it tell of it, as attributes.
  virtual const Attributes& provenance() const = 0;
};

// Throws not_found, io, and invalid_file for a file that is not an importance matrix, or with numbers that are not
// finite or negative.
std::unique_ptr<const ImportanceMatrix> open_importance_matrix(const std::filesystem::path& path);

}  // namespace poise
