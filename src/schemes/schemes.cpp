#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "model/fault_lists.hpp"
#include "schemes/make_tensors.hpp"
#include "schemes/unfolded_codes.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

constexpr std::array kSchemes = std::to_array<const QuantizationScheme*>({&schemes::gptq::kGptq,
                                                                          &schemes::awq::kAwq,
                                                                          &schemes::nvfp4::kCompressed,
                                                                          &schemes::mx::kCompressed4Bit,
                                                                          &schemes::mx::kCompressed8Bit,
                                                                          &schemes::compressed_tensors::kIntegers,
                                                                          &schemes::compressed_tensors::kInt8,
                                                                          &schemes::compressed_tensors::kFloats,
                                                                          &schemes::fp8::kInverseScales,
                                                                          &schemes::fp8::kScales,
                                                                          &schemes::fp8::kFbgemm,
                                                                          &schemes::nvfp4::kModelOpt,
                                                                          &schemes::fp8::kModelOpt,
                                                                          &schemes::nvfp4::kAutoRound,
                                                                          &schemes::mx::kAutoRound4Bit,
                                                                          &schemes::mx::kAutoRound8Bit,
                                                                          &schemes::auto_round::kFloats,
                                                                          &schemes::auto_round::kCodes,
                                                                          &schemes::bitnet::kBitNet,
                                                                          &schemes::quark::kQuark,
                                                                          &schemes::torchao::kTorchao,
                                                                          &schemes::bitsandbytes::k4Bit,
                                                                          &schemes::bitsandbytes::k8Bit,
                                                                          &schemes::hqq::kHqq,
                                                                          &schemes::mlx::kMlx,
                                                                          &schemes::mxfp4::kMxfp4});

constexpr std::size_t kMostFaults = 100;

struct QuantizationKey {
  std::string_view key;
  std::string_view method;  // the method if the object states none
};
// MLX's object has no quant_method. MLX's directories may have a copy of the object under quantization_config.
constexpr std::string_view kMlxKey = "quantization";
constexpr std::array kKeys =
    std::to_array<QuantizationKey>({{"quantization_config", ""}, {"compression_config", ""}, {kMlxKey, "mlx"}});

std::vector<const QuantizationScheme*> find_schemes(std::string_view method) {
  std::vector<const QuantizationScheme*> found;
  std::ranges::copy_if(kSchemes, std::back_inserter(found),
                       [&](const QuantizationScheme* scheme) { return scheme->method == method; });
  return found;
}

// Throws unsupported if one of these schemes does not know the variant.
void require_known_variants(std::span<const QuantizationScheme* const> schemes, const QuantizationConfig& config) {
  for (const QuantizationScheme* scheme : schemes) {
    if (scheme->require_known_variant != nullptr) scheme->require_known_variant(config);
  }
}

// Names a quantized matrix: the names of its parts begin with `name`, and the scheme gives them their endings.
struct Matrix {
  std::string name;
  const QuantizationScheme* scheme;
};

class Folding {
 public:
  Folding(const Model& model, const FoundQuantization& found)
      : Folding(model, *found.config, find_schemes(found.method)) {}
  Folding(const Model& model, const Attributes& config, std::vector<const QuantizationScheme*> schemes)
      : model_(model), config_(config), schemes_(std::move(schemes)) {
    for (const auto& [key, value] : model.attributes) {
      if (const auto* text = value.get_if<std::string>()) texts_.emplace(key, text);
    }
  }

  // Returns std::nullopt if the model has no quantized matrix.
  std::optional<Model> fold() {
    find_matrices();
    if (!matrices_.empty()) require_known_variants(schemes_, config_);
    Model result(model_.header());
    for (const Tensor& tensor : model_.tensors()) {
      const auto found = of_tensor_.find(tensor.name);
      if (found == of_tensor_.end()) {
        if (record_left_out(tensor)) continue;
        report_incomplete_matrix(tensor);
        result.add(tensor);
      } else if (made_.insert(found->second).second) {
        add_folded(result, matrices_[found->second]);
      }
    }
    throw_faults();
    if (matrices_.empty()) return std::nullopt;
    drop_descriptions(result);
    for (const QuantizationScheme* scheme : schemes_) {
      for (std::string& warning : list_warnings(*scheme))
        result.warnings.push_back({Severity::warning, std::move(warning), {}, std::nullopt});
    }
    if (!left_out_.empty()) {
      result.warnings.push_back(
          {Severity::warning, schemes::format_left_out_warning(left_out_.front(), left_out_.size()), {}, std::nullopt});
    }
    return result;
  }

 private:
  std::vector<std::string> list_warnings(const QuantizationScheme& scheme) const {
    std::vector<std::string> names;
    for (const Matrix& matrix : matrices_) {
      if (matrix.scheme == &scheme) names.push_back(matrix.name);
    }
    return scheme.list_warnings == nullptr || names.empty() ? std::vector<std::string>()
                                                            : scheme.list_warnings(model_, config_, names);
  }

  // Removes the entries of a file's metadata that describe the parts.
  void drop_descriptions(Model& result) const {
    std::vector<Attributes::Entry> left;
    for (const Attributes::Entry& entry : result.attributes) {
      const bool is_dropped = std::ranges::any_of(schemes_, [&](const QuantizationScheme* scheme) {
        return scheme->describes_tensors != nullptr && scheme->describes_tensors(entry.first, entry.second);
      });
      if (!is_dropped) left.push_back(entry);
    }
    if (left.size() < result.attributes.size()) result.attributes = Attributes::from_unique(std::move(left));
  }

  static std::optional<std::string_view> remove_ending(std::string_view name, std::string_view ending) {
    if (!name.ends_with(ending) || name.size() == ending.size()) return std::nullopt;
    return name.substr(0, name.size() - ending.size());
  }

  void find_matrices() {
    for (const Tensor& tensor : model_.tensors()) {
      for (const QuantizationScheme* scheme : schemes_) {
        const auto name = remove_ending(tensor.name, scheme->marker);
        if (!name) continue;
        const MatrixParts parts(model_, std::string(*name), *scheme);
        if (scheme->holds != nullptr && !scheme->holds(parts)) continue;
        claim_parts(parts, *scheme);
        break;
      }
    }
  }

  void claim_parts(const MatrixParts& parts, const QuantizationScheme& scheme) {
    const std::size_t index = matrices_.size();
    matrices_.push_back({parts.name(), &scheme});
    const auto claim = [&](std::string_view ending) {
      if (const Tensor* tensor = parts.find(ending)) of_tensor_.emplace(tensor->name, index);
    };
    claim(scheme.marker);
    std::ranges::for_each(scheme.parts, claim);
  }

  // Records a tensor that does not concern weights, and returns true; returns false for others. Such a tensor need not
  // belong to a matrix: self_attn.k_scale scales the cache of keys and values.
  bool record_left_out(const Tensor& tensor) {
    const bool is_left_out = !matrices_.empty() && std::ranges::any_of(schemes_, [&](const QuantizationScheme* scheme) {
      return std::ranges::any_of(
          scheme->left_out, [&](std::string_view ending) { return remove_ending(tensor.name, ending).has_value(); });
    });
    if (is_left_out) left_out_.emplace_back(tensor.name);
    return is_left_out;
  }

  void add_folded(Model& result, const Matrix& matrix) {
    const MatrixParts parts(model_, matrix.name, *matrix.scheme, &texts_);
    attempt([&] {
      Tensor tensor = matrix.scheme->fold(parts, config_);
      tensor.name = matrix.name + std::string(matrix.scheme->folded);
      if (result.find(tensor.name) != nullptr)
        parts.fail(fmt::format("its parts make the tensor {}, which the model already has: remove one of the two",
                               tensor.name));
      result.add(std::move(tensor));
    });
  }

  // Adds a fault if a tensor looks like a part of a matrix, but the matrix is incomplete.
  void report_incomplete_matrix(const Tensor& tensor) {
    const QuantizationScheme* first = nullptr;
    std::string_view name;
    std::vector<std::string> missing;
    for (const QuantizationScheme* scheme : schemes_) {
      const auto matrix = find_matrix_name(tensor, *scheme);
      if (!matrix || (first != nullptr && name != *matrix)) continue;
      if (first == nullptr) first = scheme;
      name = *matrix;
      std::string marker = fmt::format("{}{}", name, scheme->marker);
      if (std::ranges::find(missing, marker) == missing.end()) missing.push_back(std::move(marker));
    }
    if (first == nullptr) return;
    attempt([&] {
      MatrixParts(model_, std::string(name), *first)
          .fail(fmt::format("the part {} is missing, which {} needs", fmt::join(missing, " or "), tensor.name));
    });
  }

  static bool holds_codes(const Tensor& tensor, const QuantizationScheme& scheme) {
    return tensor.shape.size() >= 2 && tensor.parts.size() == 1 &&
           std::ranges::find(scheme.code_types, tensor.parts[0].dtype) != scheme.code_types.end();
  }

  static std::optional<std::string_view> find_matrix_name(const Tensor& tensor, const QuantizationScheme& scheme) {
    if (const auto name = remove_ending(tensor.name, ".weight"); name && holds_codes(tensor, scheme)) return name;
    for (const std::string_view part : scheme.parts) {
      if (part == scheme.folded) continue;
      if (const auto name = remove_ending(tensor.name, part)) return name;
    }
    return std::nullopt;
  }

  // Runs the step. If it throws invalid_file, records the error as a fault.
  template <typename Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file) throw;
      if (faults_.size() < kMostFaults && std::ranges::find(faults_, error.message()) == faults_.end())
        faults_.push_back(error.message());
    }
  }

  void throw_faults() const {
    if (faults_.empty()) return;
    require_known_variants(schemes_, config_);  // first, since the parts of an unknown variant may look faulty
    throw Error(ErrorKind::invalid_file, format_faults(faults_, kMostFaults));
  }

  const Model& model_;
  QuantizationConfig config_;
  std::vector<const QuantizationScheme*> schemes_;
  MatrixParts::Texts texts_;  // the texts among the model's attributes
  std::vector<Matrix> matrices_;
  std::map<std::string_view, std::size_t> of_tensor_;  // maps the name of a part to the index of its matrix
  std::set<std::size_t> made_;
  std::vector<std::string> faults_;
  std::vector<std::string> left_out_;
};

// Throws unsupported for codes that Poise would otherwise read as ordinary numbers or as unknown tensors.
void require_no_codes(const Model& model, const std::optional<FoundQuantization>& found) {
  for (const Tensor& tensor : model.tensors()) {
    const auto unfolded = find_unfolded_codes(model, tensor);
    if (!unfolded) continue;
    const std::string codes = fmt::format(
        "tensor {} holds codes ({}) that {} scales{}", tensor.name, describe_storage(tensor), unfolded->scale->name,
        unfolded->programs.empty() ? "" : fmt::format(", in the parts of {}", unfolded->programs));
    if (found) {
      require_known_variants(find_schemes(found->method), QuantizationConfig(*found->config));
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}, which no scheme of {} \"{}\" reads", codes, found->key, found->method));
    }
    std::vector<std::string_view> files;
    for (const QuantizationFile& file : list_quantization_files()) files.push_back(file.name);
    throw Error(
        ErrorKind::unsupported,
        fmt::format("{}, but no configuration describes how: expected quantization_config in config.json, or {}", codes,
                    fmt::join(files, ", ")));
  }
}

}  // namespace

std::optional<FoundQuantization> find_quantization(const Attributes& config_json) {
  for (const QuantizationKey& row : kKeys) {
    const auto* object = config_json.get_if<Attributes>(row.key);
    if (object == nullptr || object->empty()) continue;
    const auto* name = object->get_if<std::string>("quant_method");
    // MLX reads its own object; the one under the usual key is a copy.
    const auto* mlx = config_json.get_if<Attributes>(kMlxKey);
    if (name == nullptr && row.method.empty() && mlx != nullptr && !mlx->empty()) continue;
    std::string method = name != nullptr ? *name : std::string(row.method);
    if (method == "intel/auto-round") method = kAutoRound;  // the name of the method before 2025
    return FoundQuantization{row.key, std::move(method), object};
  }
  return std::nullopt;
}

bool is_known_method(std::string_view method) { return !find_schemes(method).empty(); }

Model fold_matrices(Model model) {
  const auto found = find_quantization(model.config_json);
  if (found && find_schemes(found->method).empty()) return model;
  std::optional<Model> result = found ? Folding(model, *found).fold() : std::nullopt;
  if (!result) {
    require_no_codes(model, found);
    return model;
  }
  if (find_reversible_scheme(model.config_json) == nullptr) {
    for (const QuantizationKey& row : kKeys) result->config_json.erase(row.key);
  }
  return std::move(*result);
}

const QuantizationScheme* find_reversible_scheme(const Attributes& config_json) {
  const auto found = find_quantization(config_json);
  if (!found) return nullptr;
  const auto row = std::ranges::find_if(kSchemes, [&](const QuantizationScheme* scheme) {
    return scheme->method == found->method && scheme->unfold != nullptr;
  });
  return row == kSchemes.end() ? nullptr : *row;
}

std::vector<std::string> list_pattern_names(const Attributes& config_json, std::string_view name) {
  std::vector<std::string> names = {std::string(name)};
  const QuantizationScheme* scheme = find_reversible_scheme(config_json);
  if (scheme == nullptr) return names;
  std::vector<std::string_view> endings(scheme->parts.begin(), scheme->parts.end());
  endings.push_back(scheme->marker);
  const auto ending = std::ranges::find_if(endings, [&](std::string_view end) { return name.ends_with(end); });
  if (ending == endings.end()) return names;
  const std::string_view matrix = name.substr(0, name.size() - ending->size());
  for (const std::string_view part : endings) names.push_back(fmt::format("{}{}", matrix, part));
  names.push_back(fmt::format("{}{}", matrix, scheme->folded));
  return names;
}

bool is_folded(const Model& model) {
  const QuantizationScheme* scheme = find_reversible_scheme(model.config_json);
  return scheme != nullptr && std::ranges::none_of(model.tensors(), [&](const Tensor& tensor) {
           return tensor.name.ends_with(scheme->marker);
         });
}

std::optional<Model> fold_comfy_ui(const Model& model) {
  constexpr std::string_view kMarker = "scaled_fp8";
  const auto is_marker = [&](const Tensor& tensor) {
    const std::string_view name = tensor.name;
    return name == kMarker || (name.ends_with(kMarker) && name[name.size() - kMarker.size() - 1] == '.');
  };
  if (std::ranges::none_of(model.tensors(), is_marker)) {
    const std::optional<Model> described = add_comfy_tensors(model);
    return described ? Folding(*described, {}, {&schemes::comfy_ui::kDescribed}).fold() : std::nullopt;
  }
  Model unmarked(model.header());
  for (const Tensor& tensor : model.tensors()) {
    if (!is_marker(tensor)) unmarked.add(tensor);
  }
  return Folding(unmarked, {}, {&schemes::fp8::kComfyUi}).fold();
}

std::optional<Model> merge_quantized_parts(const Model& model) {
  if (find_reversible_scheme(model.config_json) == nullptr || is_folded(model)) return std::nullopt;
  return Folding(model, *find_quantization(model.config_json)).fold();
}

std::optional<Model> split_quantized_parts(const Model& model, FunctionRef<bool(const Tensor& tensor)> stays) {
  const QuantizationScheme* scheme = find_reversible_scheme(model.config_json);
  if (scheme == nullptr) return std::nullopt;
  Model result(model.header());
  for (const Tensor& tensor : model.tensors()) {
    std::vector<Tensor> parts = stays(tensor) ? std::vector<Tensor>() : scheme->unfold(tensor);
    if (parts.empty()) result.add(tensor);
    for (Tensor& part : parts) result.add(std::move(part));
  }
  return result.size() == model.size() ? std::nullopt : std::optional(std::move(result));
}

std::optional<std::string> drop_quantization(Attributes& config_json) {
  const QuantizationScheme* scheme = find_reversible_scheme(config_json);
  if (scheme == nullptr) return std::nullopt;
  const FoundQuantization found = *find_quantization(config_json);
  const Attributes usual = scheme->usual_config();
  std::vector<std::string> lost;
  for (const auto& [key, setting] : *found.config) {
    const Value* same = usual.find(key);
    if (same == nullptr || !(*same == setting)) lost.push_back(key);
  }
  config_json.erase(found.key);
  if (lost.empty()) return std::nullopt;
  return fmt::format("{} of config.json is dropped: a conversion back does not restore its {}", found.key,
                     fmt::join(lost, ", "));
}

std::optional<std::int64_t> QuantizationConfig::read_integer(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* found = value->get_if<std::uint64_t>(); found != nullptr && *found <= INT64_MAX)
    return static_cast<std::int64_t>(*found);
  if (const auto* found = value->get_if<std::int64_t>()) return *found;
  fail(key, "expected an integer");
}

std::int64_t QuantizationConfig::require_integer(std::string_view key) const {
  if (const auto found = read_integer(key)) return *found;
  throw Error(ErrorKind::invalid_file, fmt::format("quantization_config: {} is missing", key));
}

const ModuleLists& QuantizationConfig::lists() const {
  return *lists_->get([this] { return std::make_shared<const ModuleLists>(keys()); });
}

bool QuantizationConfig::has(std::string_view key) const {
  const Value* value = keys().find(key);
  return value != nullptr && *value != Value() && *value != Value(false) && *value != Value(Value::Array{}) &&
         *value != Value(Attributes{});
}

const Tensor* MatrixParts::find(std::string_view ending) const { return model_.find(name_ + std::string(ending)); }

const std::string* MatrixParts::find_text(std::string_view key) const {
  if (texts_ == nullptr) return nullptr;
  const auto found = texts_->find(key);
  return found == texts_->end() ? nullptr : found->second;
}

const Tensor& MatrixParts::require(std::string_view ending) const {
  const Tensor* tensor = find(ending);
  if (tensor == nullptr) fail(fmt::format("the part {}{} is missing", name_, ending));
  return *tensor;
}

const Tensor& MatrixParts::require(std::string_view ending, std::initializer_list<DType> types,
                                   const Shape& shape) const {
  const Tensor& tensor = require(ending);
  (void)require_data(tensor, types);
  require_shape(tensor, shape);
  return tensor;
}

const Part& MatrixParts::require_data(const Tensor& tensor, std::initializer_list<DType> types) const {
  const Part* part = tensor.layout == Layout::dense ? &tensor.require("data") : nullptr;
  if (part != nullptr && std::ranges::find(types, part->dtype) != types.end()) return *part;
  std::vector<std::string_view> names;
  for (const DType type : types) names.push_back(to_string(type));
  fail(fmt::format("{} is stored as {}, expected {}", tensor.name, describe_storage(tensor), fmt::join(names, " or ")));
}

void MatrixParts::require_shape(const Tensor& tensor, const Shape& shape) const {
  if (!(tensor.shape == shape))
    fail(fmt::format("the shape of {} is {}, expected {}", tensor.name, to_string(tensor.shape), to_string(shape)));
}

void MatrixParts::require_rank(const Tensor& tensor, std::size_t rank) const {
  if (tensor.shape.size() != rank)
    fail(fmt::format("the shape of {} is {}, expected {} dimensions", tensor.name, to_string(tensor.shape), rank));
}

void MatrixParts::fail(std::string_view problem) const {
  throw Error(ErrorKind::invalid_file, fmt::format("matrix {}: {}: {}", name_, scheme_.title, problem));
}

}  // namespace poise
