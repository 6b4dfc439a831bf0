#include "ops/transform.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/format.hpp"
#include "model/card.hpp"
#include "model/without_tensors.hpp"
#include "ops/block_recipe.hpp"
#include "ops/glob.hpp"
#include "tensor/group_scheme.hpp"
#include "views/block_quantize.hpp"
#include "views/dense.hpp"
#include "views/group_quantize.hpp"
#include "views/layout_type.hpp"
#include "views/quantize.hpp"
#include "views/sparse.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse_pattern(std::string_view option, const std::string& pattern) {
  throw Error(ErrorKind::bad_argument, fmt::format("{}: the pattern \"{}\" matches no tensor", option, pattern));
}

// Which tensors go on, and whether every pattern had something to say.
class Selection {
 public:
  explicit Selection(const ConvertOptions& options)
      : only_{"only", counted(options.only)}, skip_{"skip", counted(options.skip)} {}

  bool keeps(const std::string& name) {
    const bool wanted = only_.patterns.empty() || matches(only_, name);
    const bool unwanted = matches(skip_, name);
    return wanted && !unwanted;
  }

  void require_all_used() const {
    for (const Option* option : {&only_, &skip_}) {
      for (const auto& [pattern, used] : option->patterns) {
        if (!used) refuse_pattern(option->name, pattern);
      }
    }
  }

 private:
  struct Option {
    std::string_view name;
    std::vector<std::pair<std::string, bool>> patterns;  // pattern, has it matched
  };

  static std::vector<std::pair<std::string, bool>> counted(const std::vector<std::string>& patterns) {
    std::vector<std::pair<std::string, bool>> result;
    for (const std::string& pattern : patterns) result.emplace_back(pattern, false);
    return result;
  }

  static bool matches(Option& option, const std::string& name) {
    bool any = false;
    for (auto& [pattern, used] : option.patterns) {
      if (glob_matches(pattern, name)) any = used = true;
    }
    return any;
  }

  Option only_;
  Option skip_;
};

bool is_castable(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// What numbers cannot be made of is held by every format, or refused by its writer.
bool holds(const Format& target, const Tensor& tensor) {
  return holds_layout(target, layout_type(tensor.layout)) || !(has_float_elements(tensor) || is_sparse(tensor));
}

// Decides what floating-point tensors become. `described` has the card and the configuration that will be written.
class Types {
 public:
  Types(const Model& model, const Model& described, const Format& target, const ConvertOptions& options)
      : described_(described), target_(target), options_(options), used_(options.keep.size(), false) {
    if ((options.dtype ? 1 : 0) + (options.quantize ? 1 : 0) + (options.recipe.empty() ? 0 : 1) > 1) {
      throw Error(ErrorKind::bad_argument,
                  "dtype, quantize and recipe exclude each other; keep gives some tensors another type");
    }
    if (!options.recipe.empty()) {
      recipe_.emplace(options.recipe, model);
      if (!holds_layout(target, layouts::blocks))
        throw Error(ErrorKind::bad_argument,
                    fmt::format("{} files hold no {} tensors", target.info.name, options.recipe));
    }
    if (options.quantize && !options.quantize->quantized()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("tensors are quantized to qint8, qint4, group8, group4 or ggml's blocks, not {}",
                              to_string(options.quantize->dtype)));
    }
    if (options.dtype) require_castable(*options.dtype);
    if (options.quantize) require_possible(*options.quantize);
    for (const ConvertOptions::Keep& keep : options.keep) require_possible(keep.type);
  }

  // Nothing when the tensor keeps its type. `transposed_tensor`: the transposed one, where its columns would become
  // blocks.
  std::optional<StoredType> wanted(const Tensor& tensor, const std::optional<Tensor>& transposed_tensor) {
    const Tensor& rows = transposed_tensor ? *transposed_tensor : tensor;
    const auto kept = kept_type(tensor.name);
    if (!has_float_elements(tensor)) {
      if (kept && tensor.layout != Layout::other) no_numbers_.push_back(tensor.name);
      return std::nullopt;
    }
    const bool always_f32 = target_.stores_as_f32 != nullptr && target_.stores_as_f32(described_, tensor);
    auto type = kept ? kept : requested(tensor, rows);
    if (!type && always_f32 && becomes_dense(tensor) && element_type(tensor) != DType::f64) type = StoredType{};
    if (!type) return std::nullopt;
    // The values of vectors (norms, mostly) weigh too much, and their bytes too little, for codes.
    const bool is_small = tensor.shape.size() < 2 || (type->blocks != nullptr && !kept && is_never_blocks(tensor.name));
    if (kept && kept->quantized() && is_small) {
      spared_.push_back(tensor.name);
    } else if (kept && always_f32 && *kept != StoredType{}) {
      always_f32_.push_back(tensor.name);
    }
    const StoredType result = always_f32 || (type->quantized() && is_small) ? StoredType{} : fitting(rows, *type);
    return is_stored_so(tensor, result, transposed_tensor ? BlocksAlong::columns : BlocksAlong::rows)
               ? std::nullopt
               : std::optional(result);
  }

  // Does it keep its type although that was to change?
  bool is_out_of_reach(const Tensor& tensor, const std::optional<StoredType>& wanted) const {
    if (!options_.dtype && !options_.quantize && !recipe_ && !is_kept(tensor.name)) return false;
    if (is_sparse(tensor)) return wanted && wanted->quantized();
    return tensor.layout == Layout::other && !has_float_elements(tensor);
  }

  // Tells what keep asks for in vain.
  void warn_of_keep(Model& model) const;

  void require_all_used() const {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) refuse_pattern("keep", options_.keep[i].pattern);
    }
  }

 private:
  bool becomes_dense(const Tensor& tensor) const { return tensor.layout == Layout::dense || !holds(target_, tensor); }

  bool is_kept(const std::string& name) const {
    return std::ranges::any_of(options_.keep,
                               [&](const ConvertOptions::Keep& keep) { return glob_matches(keep.pattern, name); });
  }

  static void require_castable(DType dtype) {
    if (!is_castable(dtype))
      throw Error(ErrorKind::bad_argument, fmt::format("tensors become f32, f16 or bf16, not {}", to_string(dtype)));
  }

  void require_possible(const StoredType& type) const {
    if (!type.quantized()) return require_castable(type.dtype);
    if (holds_layout(target_, layout_type(type))) return;
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} files hold no {} tensors", target_.info.name, to_string(type)));
  }

  // For rows that are no whole blocks what llama-quantize takes.
  static StoredType fitting(const Tensor& tensor, StoredType type) {
    if (type.blocks == nullptr) return type;
    type.blocks = block_type_for_rows(*type.blocks, tensor.shape.back());
    return type.blocks != nullptr ? type : StoredType{DType::f16};
  }

  // `along`: which way the rows run that would become blocks.
  static bool is_stored_so(const Tensor& tensor, const StoredType& type, BlocksAlong along) {
    const LayoutType& layout = layout_type(tensor.layout);
    if (&layout != &layout_type(type) || layout.is_stored_as == nullptr) return false;
    return layout.is_stored_as(tensor, type) && (type.blocks == nullptr || tensor.layout.blocks_along() == along);
  }

  std::optional<StoredType> kept_type(const std::string& name) {
    std::optional<StoredType> type;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (!glob_matches(options_.keep[i].pattern, name)) continue;
      used_[i] = true;
      if (!type) type = options_.keep[i].type;
    }
    return type;
  }

  std::optional<StoredType> requested(const Tensor& tensor, const Tensor& rows) const {
    if (options_.quantize) return options_.quantize;
    if (recipe_) return StoredType{.dtype = DType::u8, .blocks = &recipe_->type_for(rows, !options_.imatrix.empty())};
    if (options_.dtype) return StoredType{*options_.dtype};
    // ALT's canonical types have no bf16 (it is an extension, written when asked for by name); f16 has the same width.
    const bool replaced = becomes_dense(tensor) && element_type(tensor) == DType::bf16 && !target_.holds_bf16;
    return replaced ? std::optional(StoredType{DType::f16}) : std::nullopt;
  }

  const Model& described_;
  const Format& target_;
  const ConvertOptions& options_;
  std::optional<BlockRecipe> recipe_;
  std::vector<bool> used_;
  // Names of tensors that keep does not change as it says.
  std::vector<std::string> no_numbers_;
  std::vector<std::string> spared_;  // from codes
  std::vector<std::string> always_f32_;
};

// Weights for errors, where there is a file of them.
class Importances {
 public:
  Importances(const Model& model, const ConvertOptions& options) : model_type_(model.card.model_type) {
    if (options.imatrix.empty()) return;
    if (!options.recipe.empty() || (options.quantize && options.quantize->blocks != nullptr)) {
      matrix_ = open_importance_matrix(options.imatrix);
    } else {
      throw Error(ErrorKind::bad_argument,
                  "an importance matrix weighs the errors of ggml's blocks, and the tensors are not to become any");
    }
  }

  Importance of(const Tensor& tensor, const std::optional<StoredType>& type) {
    if (!matrix_ || !type || type->blocks == nullptr) return nullptr;
    const std::size_t matrices = tensor.shape.size() == 3 ? static_cast<std::size_t>(tensor.shape.front()) : 1;
    Importance weights =
        matrix_->weights(tensor.name, model_type_, static_cast<std::size_t>(tensor.shape.back()), matrices);
    used_ = used_ || weights != nullptr;
    if (weights == nullptr) without_.push_back(tensor.name);
    return weights;
  }

  void require_used() const {
    if (!matrix_ || used_) return;
    throw Error(ErrorKind::bad_argument, "imatrix: it names no tensor that becomes blocks, so it is of another model");
  }

  // What became blocks by ggml's own rule although there is a file of weights.
  const std::vector<std::string>& without() const { return without_; }

  void tell(Attributes& attributes) const {
    if (!matrix_) return;
    for (const auto& [key, value] : matrix_->provenance()) attributes.set(key, value);
  }

 private:
  bool used_ = false;
  std::vector<std::string> without_;
  std::string model_type_;
  std::unique_ptr<const ImportanceMatrix> matrix_;
};

Tensor quantize_tensor(const Tensor& tensor, const StoredType& type, const Importance& importance,
                       std::vector<QuantizedTensor>& done) {
  Tensor quantized =
      type.blocks != nullptr ? quantize_to_blocks(tensor, *type.blocks, importance) : quantize(tensor, type);
  StoredType actual = type;
  if (type.grouped()) actual.groups.size = quantized.layout.groups()->group_size;
  done.push_back({tensor.name, actual, tensor.size_bytes(), quantized.size_bytes()});
  return quantized;
}

Tensor cast_tensor(const Tensor& tensor, DType to, std::vector<CastTensor>& casts) {
  casts.push_back({tensor.name, element_type(tensor), to});
  Tensor cast = make_dense(tensor.name, tensor.shape, to, dense_blob(tensor, to));
  if (tensor.layout == Layout::dense) cast.attributes = tensor.attributes;  // other layouts' describe their codes
  return cast;
}

// Is it stored as codes?
bool is_quantized(const Tensor& tensor) { return layout_type(tensor.layout).quantized; }

bool has_more_parts(const Tensor& tensor) { return tensor.layout == Layout::dense && tensor.parts.size() > 1; }

// A dense tensor's parts beside data go along where it stays dense.
Tensor with_parts_beside_data(Tensor tensor, const Tensor& original) {
  if (!has_more_parts(original) || tensor.layout != Layout::dense || has_more_parts(tensor)) return tensor;
  std::ranges::copy_if(original.parts, std::back_inserter(tensor.parts),
                       [](const Part& part) { return part.role != "data"; });
  return tensor;
}

// A sparse tensor stays one; its values are cast.
Tensor cast_values(Tensor tensor, const std::optional<StoredType>& type, std::vector<CastTensor>& casts) {
  const DType from = tensor.require("values").dtype;
  if (!type || type->quantized() || from == type->dtype) return tensor;
  casts.push_back({tensor.name, from, type->dtype});
  return with_cast_values(std::move(tensor), type->dtype);
}

// The same tensor, dense where the target does not have its layout.
Tensor laid_out(const Tensor& tensor, const Format& target) {
  return holds(target, tensor) ? tensor : make_dense_tensor(tensor);
}

bool is_asked_to_be_sparse(const Tensor& tensor, const ConvertOptions& options) {
  return options.sparse && tensor.layout == Layout::dense && element_type(tensor) != DType::unknown &&
         may_become_sparse(tensor, *options.sparse);
}

void require_sparse_possible(const Format& target, const ConvertOptions& options) {
  if (!options.sparse) return;
  if (*options.sparse != Layout::sparse_csr && *options.sparse != Layout::sparse_coo) {
    throw Error(ErrorKind::bad_argument, fmt::format("{} is no sparse layout", to_string(*options.sparse)));
  }
  if (!holds_layout(target, *options.sparse == Layout::sparse_coo ? layouts::sparse_coo : layouts::sparse_csr))
    throw Error(ErrorKind::bad_argument, fmt::format("{} files hold no sparse tensors", target.info.name));
  if (!(options.min_sparsity >= 0 && options.min_sparsity <= 1)) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("a least sparsity of {}: expected a number from 0 to 1", options.min_sparsity));
  }
}

// The transposed matrix, where its columns become blocks: other codes than blocks of columns are numbers.
std::optional<Tensor> transposed_for_blocks(const Model& model, const Format& target, const Tensor& matrix) {
  const bool becomes_blocks = holds_layout(target, layouts::blocks) && has_float_elements(matrix) &&
                              !(is_sparse(matrix) && holds(target, matrix));
  if (!becomes_blocks || matrix.shape.size() != 2 || !runs_along_columns(model, matrix.name)) return std::nullopt;
  if (matrix.layout.blocks_along() == BlocksAlong::columns) return transposed(matrix);
  const bool narrow = info(element_type(matrix)).bits < 8;
  return transposed(narrow ? make_dense(matrix.name, matrix.shape, DType::f32, dense_blob(matrix, DType::f32))
                           : make_dense_tensor(matrix));
}

Tensor transformed(const Tensor& tensor, const std::optional<StoredType>& type, const Importance& importance,
                   const Format& target, Transformed& result) {
  if (is_sparse(tensor) && holds(target, tensor)) return cast_values(tensor, type, result.casts);
  if (!type) return laid_out(tensor, target);
  if (type->quantized()) return quantize_tensor(tensor, *type, importance, result.quantized);
  return laid_out(cast_tensor(tensor, type->dtype, result.casts), target);
}

// One warning for all of them; none where there are none.
void warn(Model& model, const std::vector<std::string>& tensors, std::string_view what) {
  if (tensors.empty()) return;
  const std::string more = tensors.size() > 1 ? fmt::format(" and {} more", tensors.size() - 1) : "";
  model.warnings.push_back({Severity::warning, fmt::format("tensor {}{}: {}", tensors.front(), more, what), {}, {}});
}

void Types::warn_of_keep(Model& model) const {
  warn(model, no_numbers_, "its elements are no floating-point numbers, so keep does not change them");
  warn(model, spared_, "vectors are not quantized, so it is f32");
  warn(model, always_f32_, fmt::format("{} files store it as f32, whatever keep says", target_.info.name));
}

void replace_fields(Card& card, const Card& with) {
  const auto replace = [](std::string& field, const std::string& value) {
    if (!value.empty()) field = value;
  };
  replace(card.model_type, with.model_type);
  replace(card.base_model, with.base_model);
  replace(card.author, with.author);
  replace(card.created_at, with.created_at);
  replace(card.last_modified, with.last_modified);
  replace(card.license, with.license);
  replace(card.uuid, with.uuid);
}

// A configuration of a family that is not known may say all that another one needs.
void read_config_as(Model& model, const std::string& model_type) {
  if (model.config || model.config_json.empty() || find_family(model_type) == nullptr) return;
  Attributes map = std::move(model.config_json);
  map.set("model_type", model_type);
  take_config(model, std::move(map), model.origin.path.string());
}

// What is left out may be what the model's family needs.
void warn_of_missing_tensors(const Model& input, Transformed& result) {
  if (result.skipped.empty()) return;
  const std::vector<std::string> faults = check_consistency(result.model);
  const std::size_t before = check_consistency(input).size();
  if (faults.size() <= before) return;
  const std::size_t more = faults.size() - 1;
  result.model.warnings.push_back(
      {Severity::warning,
       fmt::format("the model needs tensors that are left out, so verify fails and the file cannot be run: {}{}",
                   faults.front(), more == 0 ? std::string() : fmt::format(", and {} more", more)),
       {},
       {}});
}

void warn_of_lost_parts(Model& model, const std::vector<std::string>& tensors) {
  warn(model, tensors, "its parts beside data are lost, for it is dense no more");
}

}  // namespace

Transformed transform(const Model& input, const Format& target, const ConvertOptions& options) {
  Transformed result;
  result.reformed = reformed(input, target.weights, options.dtype || options.quantize || !options.recipe.empty());
  const Model& model = result.reformed ? result.reformed->model : input;
  result.model = without_tensors(model);
  replace_fields(result.model.card, checked_card(options.card));
  read_config_as(result.model, options.card.model_type);
  require_sparse_possible(target, options);
  Selection selection(options);
  Types types(model, result.model, target, options);
  Importances importance(model, options);
  std::vector<std::string> untouched;
  std::vector<std::string> requantized;  // become codes of others
  std::vector<std::string> lost_parts;   // of parts
  const Tensor* const unused = target.ties_by_absence ? unused_output(model) : nullptr;
  for (const Tensor& tensor : model.tensors()) {
    if (!selection.keeps(tensor.name)) {
      result.skipped.push_back(tensor.name);
      continue;
    }
    if (&tensor == unused) {
      result.model.warnings.push_back(
          {Severity::warning, fmt::format("tensor {} is left out: {}", tensor.name, kUnusedOutput), {}, {}});
      continue;
    }
    const std::optional<Tensor> transposed_tensor = transposed_for_blocks(model, target, tensor);
    const Tensor& rows = transposed_tensor ? *transposed_tensor : tensor;  // that become blocks
    const auto type = types.wanted(tensor, transposed_tensor);
    if (type && type->quantized() && is_quantized(tensor)) requantized.push_back(tensor.name);
    if (types.is_out_of_reach(tensor, type))
      untouched.push_back(fmt::format("{} ({})", tensor.name, storage_name(tensor)));
    const bool transposes_back = transposed_tensor && type && type->blocks != nullptr;
    Tensor output = transformed(transposes_back ? rows : tensor, type, importance.of(rows, type), target, result);
    if (transposes_back) output = transposed(std::move(output));
    const Tensor& made = result.model.add(with_parts_beside_data(std::move(output), tensor));
    if (!type && is_quantized(tensor) && made.layout == Layout::dense) {
      ++result.decoded.tensors;
      result.decoded.bytes_in = saturating_add(result.decoded.bytes_in, tensor.size_bytes());
      result.decoded.bytes_out = saturating_add(result.decoded.bytes_out, made.size_bytes());
    }
    if (has_more_parts(tensor) && !has_more_parts(made)) lost_parts.push_back(tensor.name);
    if (is_asked_to_be_sparse(made, options)) result.perhaps_sparse.insert(tensor.name);
  }
  if (!options.recipe.empty() || !result.quantized.empty() || !result.casts.empty())
    result.model.origin.recipe = options.recipe;
  warn_of_missing_tensors(model, result);
  selection.require_all_used();
  types.require_all_used();
  importance.require_used();
  importance.tell(result.model.attributes);
  warn(result.model, requantized,
       "its codes are quantized again, and errors add up; what is lost is measured against these codes");
  warn(result.model, importance.without(), "the importance matrix has no weights for it, so it is quantized without");
  warn(result.model, untouched, "stored in a way that cannot be cast or quantized, so the type stays");
  types.warn_of_keep(result.model);
  warn_of_lost_parts(result.model, lost_parts);
  return result;
}

void make_sparse(Transformed& transformed, const ConvertOptions& options) {
  if (transformed.perhaps_sparse.empty()) return;
  Model model = without_tensors(transformed.model);
  std::vector<std::string> lost_parts;
  for (const Tensor& tensor : transformed.model.tensors()) {
    const bool is_asked = transformed.perhaps_sparse.contains(tensor.name);
    auto sparse = is_asked ? sparsify(tensor, *options.sparse, options.min_sparsity) : std::nullopt;
    if (sparse && has_more_parts(tensor)) lost_parts.push_back(tensor.name);
    model.add(sparse ? std::move(*sparse) : tensor);
  }
  warn_of_lost_parts(model, lost_parts);
  transformed.model = std::move(model);
  transformed.perhaps_sparse.clear();
}

}  // namespace poise
