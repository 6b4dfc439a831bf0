// Importance matrices: how much the output of a model depends on each column of its matrices, as measured by
// llama-imatrix.
//
// GGUF: tensors "<name>.in_sum2" [matrices, columns] and "<name>.counts" [matrices]. The older format: i32 entries; for
// each i32 length, name, i32 calls, i32 values, f32 values; newer ones end with i32 chunks, i32 length, data set.
// Source: llama.cpp's tools/imatrix, v0.5.0.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

#include "formats/importance_matrix.hpp"

namespace poise::gguf {

class ImatrixFile final : public ImportanceMatrix {
 public:
  // Throws what open_importance_matrix() throws.
  explicit ImatrixFile(const std::filesystem::path& path);

  std::shared_ptr<const std::vector<float>> weights(std::string_view tensor, std::string_view model_type,
                                                    std::size_t columns, std::size_t matrices = 1) const override;

  // What llama-quantize records of it in its files: "quantize.imatrix.file" without directories, "dataset",
  // "entries_count", "chunks_count".
  const Attributes& provenance() const override { return provenance_; }

 private:
  void read_gguf(const std::filesystem::path& path);
  void read_older(const std::filesystem::path& path);
  void add(std::string name, std::vector<float> weights);

  void tell(std::string_view dataset, std::uint64_t chunks);

  std::string path_;
  Attributes provenance_;
  std::map<std::string, std::shared_ptr<const std::vector<float>>, std::less<>> weights_;  // by GGUF's names
};

std::unique_ptr<const ImportanceMatrix> read_imatrix(const std::filesystem::path& path);

}  // namespace poise::gguf
