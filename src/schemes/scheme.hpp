// Schemes: how programs that quantize models store the matrices of a Hugging Face directory, each as several tensors.
//
// A scheme is orthogonal to families: a file with a row, and its place in the table of schemes.cpp. fold() makes one
// tensor of each matrix, of its logical shape and with the same codes, before anything asks the family's table.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// The object that describes how a directory is quantized, of config.json.
class QuantizationConfig {
 public:
  explicit QuantizationConfig(const Attributes& keys) : keys_(keys) {}

  const Attributes& keys() const { return keys_; }
  // Each throws invalid_file (without path) where the key is of another type; number() where it is absent, too. Null
  // is absent.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::int64_t> optional_number(std::string_view key) const;
  std::int64_t number(std::string_view key) const;
  // Is there a value of this key that is not null, false or empty?
  bool has(std::string_view key) const;

 private:
  const Attributes& keys_;
};

struct QuantizationScheme;

// The tensors that a matrix is stored as, by what follows the matrix's name in theirs.
class MatrixParts {
 public:
  MatrixParts(const Model& model, std::string name, const QuantizationScheme& scheme)
      : model_(model), name_(std::move(name)), scheme_(scheme) {}

  const std::string& name() const { return name_; }  // "model.layers.0.mlp.down_proj"
  const Tensor* find(std::string_view ending) const;
  const Tensor& require(std::string_view ending) const;
  // Dense, with elements of that type, or of one of several.
  const Part& data(const Tensor& tensor, std::initializer_list<DType> types) const;
  void require_shape(const Tensor& tensor, const Shape& shape) const;
  void require_rank(const Tensor& tensor, std::size_t rank) const;

  // Throws invalid_file (without path) naming matrix and scheme.
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const Model& model_;
  std::string name_;
  const QuantizationScheme& scheme_;
};

struct QuantizationScheme {
  std::string_view title;  // for people: "GPTQ"
  // The quant_method of quantization_config.
  std::string_view method;
  // Throws unsupported (without path) for what this program stores otherwise than fold() knows. Null: nothing.
  void (*require_known)(const QuantizationConfig& config) = nullptr;

  // What follows a matrix's name in that of a tensor that every matrix of the scheme has, and no other.
  std::string_view marker;
  std::span<const std::string_view> parts;          // the same of the other tensors that fold() takes
  std::span<const std::string_view> left_out = {};  // and of those that say nothing of the weights
  std::string_view folded = ".weight";              // of the matrix's own tensor
  // Among matrices with the marker, is this one the scheme's? Null: all are.
  bool (*holds)(const MatrixParts& matrix) = nullptr;
  // Does a tensor of such a name and such elements make sense only together with others? Null: those that end as a
  // part.
  bool (*is_part)(const Tensor& tensor) = nullptr;
  // The matrix as one tensor, by views. Name is set by the caller. Throws invalid_file (without path).
  Tensor (*fold)(const MatrixParts& matrix, const QuantizationConfig& config);
};

std::span<const QuantizationScheme* const> quantization_schemes();

// What a model with quantization_config is quantized by: the object, and the name of its key. Nothing: by nothing.
struct FoundQuantization {
  std::string_view key;
  std::string method;
  const Attributes* config;
};
std::optional<FoundQuantization> find_quantization(const Attributes& config_json);

// Folds the matrices of a model whose config.json names a scheme of the table; that key goes. Others come back as they
// are. Tensors that are left out and what else is lost is told by warnings. Throws invalid_file (without path) that
// lists every matrix with a part that is missing or does not fit.
Model folded(Model model);

}  // namespace poise
