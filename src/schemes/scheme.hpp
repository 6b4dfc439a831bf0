// Describes schemes: how quantizing programs store the matrices of a Hugging Face directory, each as several tensors.
//
// A scheme works with all families. Each file defines one or more schemes, and schemes.cpp has their table. fold()
// makes one tensor from the parts of each matrix, with the matrix's logical shape and the same codes. After this, Poise
// compares names and shapes with the family's table of tensors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/model.hpp>

#include "bytes/function_ref.hpp"
#include "io/threads.hpp"
#include "schemes/quantization_files.hpp"
#include "syntax/fields.hpp"

namespace poise {

// Reads the object in config.json that describes the quantization. Requires: the object outlives this and does not
// change.
class QuantizationConfig : public Fields {
 public:
  explicit QuantizationConfig(const Attributes& keys) : Fields(keys, "quantization_config") {}

  // Each function throws invalid_file (without path) for a value of another type; require_integer() does so for a
  // missing key, too.
  std::optional<std::int64_t> read_integer(std::string_view key) const;
  std::int64_t require_integer(std::string_view key) const;
  // Returns true if the key has a value other than null, false, or an empty list or object.
  bool has(std::string_view key) const;
  // Returns the lists of modules in a configuration of compressed-tensors. The first call reads them, and throws what
  // ModuleLists() throws. Thread-safe.
  const ModuleLists& lists() const;

 private:
  std::shared_ptr<LazyValue<const ModuleLists>> lists_ = std::make_shared<LazyValue<const ModuleLists>>();
};

struct QuantizationScheme;

// Finds the tensors of a matrix by the suffix after the matrix's name.
class MatrixParts {
 public:
  // Maps the keys of a file's metadata to texts.
  using Texts = std::unordered_map<std::string_view, const std::string*>;

  // `texts` may be null. Requires: model, scheme and texts outlive this.
  MatrixParts(const Model& model, std::string name, const QuantizationScheme& scheme, const Texts* texts = nullptr)
      : model_(model), name_(std::move(name)), scheme_(scheme), texts_(texts) {}

  const std::string& name() const { return name_; }  // "model.layers.0.mlp.down_proj"
  // If the tensor is missing, find() returns null, and require() throws what fail() throws.
  const Tensor* find(std::string_view ending) const;
  const Tensor& require(std::string_view ending) const;
  // Returns a text in the metadata of the model's files; null if it is missing.
  const std::string* find_text(std::string_view key) const;
  // Returns the tensor. Throws what fail() throws unless it is dense, with one of these types and that shape.
  const Tensor& require(std::string_view ending, std::initializer_list<DType> types, const Shape& shape) const;
  // Returns the data of a tensor. Throws what fail() throws unless the tensor is dense, with one of these types.
  const Part& require_data(const Tensor& tensor, std::initializer_list<DType> types) const;
  void require_shape(const Tensor& tensor, const Shape& shape) const;
  void require_rank(const Tensor& tensor, std::size_t rank) const;

  // Throws invalid_file (without path) with the names of the matrix and the scheme, and the problem.
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const Model& model_;
  std::string name_;
  const QuantizationScheme& scheme_;
  const Texts* texts_;
};

// AutoRound's directories have this quant_method. Several schemes read them.
inline constexpr std::string_view kAutoRound = "auto-round";

// Most schemes store several codes in a word of one of kWordTypes, and scales in one of kScaleTypes.
inline constexpr std::initializer_list<DType> kWordTypes = {DType::i32, DType::u32};
inline constexpr std::initializer_list<DType> kScaleTypes = {DType::f16, DType::bf16, DType::f32};

struct QuantizationScheme {
  std::string_view title;   // the name in messages: "GPTQ"
  std::string_view method;  // the value of quant_method in quantization_config; empty: files without it (ComfyUI)
  // Throws unsupported (without path) if the configuration has a variant that fold() cannot read. Null: no check.
  void (*require_known_variant)(const QuantizationConfig& config) = nullptr;

  // Every matrix of the scheme has a tensor with this suffix. `holds` rejects matrices of other schemes that also have
  // one.
  std::string_view marker;
  std::span<const std::string_view> parts;  // suffixes of the other tensors that fold() reads
  std::span<const std::string_view> left_out =
      {};                               // suffixes of tensors that are dropped, because they do not concern weights
  std::string_view folded = ".weight";  // suffix of the folded tensor
  // Returns true if a matrix with the marker belongs to the scheme. Null: all do.
  bool (*holds)(const MatrixParts& matrix) = nullptr;
  // If a matrix "X.weight" has one of these types, its elements are codes, which need the other parts of X.
  std::span<const DType> code_types = {};
  // Returns warnings if these matrices of the scheme contradict the configuration. Null: no warnings.
  std::vector<std::string> (*list_warnings)(const Model& model, const QuantizationConfig& config,
                                            std::span<const std::string> matrices) = nullptr;
  // Returns true for the entries of a file's metadata that describe parts, which a folded matrix does not have. Null:
  // there are none.
  bool (*describes_tensors)(std::string_view key, const Value& value) = nullptr;
  // Returns the matrix as one lazy tensor. The caller sets its name. Throws invalid_file (without path) for parts that
  // are missing or do not fit, and unsupported for a form that Poise does not read.
  Tensor (*fold)(const MatrixParts& matrix, const QuantizationConfig& config);

  // Undoes fold(): returns the parts of a folded matrix, with their full names; empty if the tensor is not one that
  // fold() makes. Null: matrices stay folded, and the folded model has no quantization_config.
  std::vector<Tensor> (*unfold)(const Tensor& matrix) = nullptr;
  // Returns the quantization_config that directories of this scheme usually have. Set if `unfold` is set.
  Attributes (*usual_config)() = nullptr;
};

// Holds the object of config.json that describes the quantization, the object's key, and the method that it names.
struct FoundQuantization {
  std::string_view key;
  std::string method;
  const Attributes* config;
};
// Returns std::nullopt for a model that is not quantized.
std::optional<FoundQuantization> find_quantization(const Attributes& config_json);

// Returns true if the table has a scheme with that quant_method.
bool is_known_method(std::string_view method);

// Folds the matrices of a model whose config.json names a scheme of the table, and removes quantization_config unless
// the scheme can unfold. Returns other models unchanged. Warns of tensors that are left out and of contradictions.
// Throws invalid_file (without path) with a list of the matrices that have a missing or wrong part. Throws unsupported
// for unknown variants of a scheme, and for codes whose scales the configuration does not describe.
Model fold_matrices(Model model);

// Returns the scheme that config.json names, if it can unfold; else null.
const QuantizationScheme* find_reversible_scheme(const Attributes& config_json);

// Returns the names by which a user's pattern may select a tensor. If config.json names a scheme that can unfold, a
// part of a matrix also has the names of the matrix and its other parts, since all parts are needed together.
std::vector<std::string> list_pattern_names(const Attributes& config_json, std::string_view name);

// Returns true if config.json names a scheme that can unfold, and the model has no tensor that is still to be folded.
bool is_folded(const Model& model);

// Folds the matrices of a scheme that can unfold, since files of any format may hold its parts. Returns std::nullopt if
// there are none, or for other schemes. Throws what fold_matrices() throws.
std::optional<Model> merge_quantized_parts(const Model& model);

// Folds ComfyUI's matrices: those of f8 with a scale_weight, if the model has the tensor scaled_fp8; otherwise those
// that the file describes (comfy_ui.cpp). Returns std::nullopt if there are none. Throws what fold_matrices() throws.
std::optional<Model> fold_comfy_ui(const Model& model);

// Replaces the key _quantization_metadata by a tensor X.comfy_quant for each module X in the key's JSON, if the model
// has the tensor X.weight. Returns std::nullopt if the model has neither the key nor a tensor X.comfy_quant. Throws
// invalid_file if the key's text is not JSON of the form that comfy_ui.cpp describes.
std::optional<Model> add_comfy_tensors(const Model& model);

// Undoes merge_quantized_parts(), except for tensors for which `stays` is true. Returns std::nullopt if no tensor
// changes.
std::optional<Model> split_quantized_parts(const Model& model, FunctionRef<bool(const Tensor& tensor)> stays);

// Removes the quantization_config of a scheme that can unfold. Returns a sentence about values that its usual_config()
// would not restore; std::nullopt if there are none.
std::optional<std::string> drop_quantization(Attributes& config_json);

}  // namespace poise

// Declares the schemes. Each file has its own namespace, so that several files may use the same name.
namespace poise::schemes {

namespace auto_round {
extern const QuantizationScheme kFloats;
extern const QuantizationScheme kCodes;
}  // namespace auto_round
namespace awq {
extern const QuantizationScheme kAwq;
}  // namespace awq
namespace bitnet {
extern const QuantizationScheme kBitNet;
}  // namespace bitnet
namespace bitsandbytes {
extern const QuantizationScheme k4Bit;
extern const QuantizationScheme k8Bit;
}  // namespace bitsandbytes
namespace comfy_ui {
extern const QuantizationScheme kDescribed;
}  // namespace comfy_ui
namespace compressed_tensors {
extern const QuantizationScheme kIntegers;
extern const QuantizationScheme kInt8;
extern const QuantizationScheme kFloats;
}  // namespace compressed_tensors
namespace fp8 {
extern const QuantizationScheme kInverseScales;
extern const QuantizationScheme kScales;
extern const QuantizationScheme kFbgemm;
extern const QuantizationScheme kComfyUi;
extern const QuantizationScheme kModelOpt;
}  // namespace fp8
namespace gptq {
extern const QuantizationScheme kGptq;
}  // namespace gptq
namespace hqq {
extern const QuantizationScheme kHqq;
}  // namespace hqq
namespace mlx {
extern const QuantizationScheme kMlx;
}  // namespace mlx
namespace mx {
extern const QuantizationScheme kCompressed4Bit;
extern const QuantizationScheme kCompressed8Bit;
extern const QuantizationScheme kAutoRound4Bit;
extern const QuantizationScheme kAutoRound8Bit;
}  // namespace mx
namespace mxfp4 {
extern const QuantizationScheme kMxfp4;
}  // namespace mxfp4
namespace quark {
extern const QuantizationScheme kQuark;
}  // namespace quark
namespace torchao {
extern const QuantizationScheme kTorchao;
}  // namespace torchao
namespace nvfp4 {
extern const QuantizationScheme kModelOpt;
extern const QuantizationScheme kCompressed;
extern const QuantizationScheme kAutoRound;
}  // namespace nvfp4

}  // namespace poise::schemes

namespace poise {

// Holds a model whose quantized matrices are stored as parts, as in compressed-tensors' pack-quantized
// (compressed_tensors.cpp).
struct UnfoldedModel {
  Model model;
  Attributes config;                // quantization_config; empty: no matrix has codes
  std::vector<std::string> losses;  // one sentence for each tensor whose codes became numbers
};

// Returns why groups of codes of that many bits become numbers, whatever their values; empty if unfold_groups() makes
// parts of them. `embedding` is the name of the embedding.
std::string_view explain_numbers(const Tensor& tensor, unsigned bits, std::string_view embedding);

// Replaces a matrix by its parts if its groups run along rows, its codes have 4 or 8 bits, and each group has a zero
// point that is a code. Those of explain_numbers() and all other tensors with groups become float32 numbers. Zero
// points may be integers or float16. Poise reads float16 ones here, to find those that are not codes. Reading the parts
// checks integers, and throws unsupported, which names the tensor, if one is not a code. `tied` is the name of the
// output matrix if it is tied to the embedding, else empty. If the model lacks this matrix, the configuration lists it
// as not quantized. Returns std::nullopt for a model without groups.
std::optional<UnfoldedModel> unfold_groups(const Model& model, std::string_view embedding, std::string_view tied);

// Returns the quantization_config of the published directories of gpt-oss (mxfp4.cpp).
Attributes make_mxfp4_config();

}  // namespace poise
