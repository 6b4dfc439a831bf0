// PEFT's adapters. adapter_config.json has r, lora_alpha and the patterns that change them; of each matrix there are
//
//   base_model.model.NAME.lora_A.weight   [rank, in]       or lora_embedding_A [rank, tokens]
//   base_model.model.NAME.lora_B.weight   [out, rank]      or lora_embedding_B [width, rank]
//
// and any other tensor replaces the model's of its name.
#include <poise/lora.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "family/check.hpp"
#include "family/families.hpp"
#include "io/source_text.hpp"
#include "views/cast.hpp"
#include "views/dense.hpp"
#include "views/low_rank.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = "adapter_config.json";
constexpr std::string_view kWeights = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::uint64_t kMaxConfigBytes = 16 << 20;
constexpr std::uint64_t kMaxRank = 1 << 16;

struct Ending {
  std::string_view text;
  bool left;       // B
  bool embedding;  // the product is transposed
};
// A name may contain the adapter's own, "default", before "weight".
constexpr std::array kEndings = std::to_array<Ending>({{".lora_A", false, false},
                                                       {".lora_B", true, false},
                                                       {".lora_embedding_A", false, true},
                                                       {".lora_embedding_B", true, true}});

// The two thin matrices for one of the model's.
struct Pair {
  const Tensor* left = nullptr;
  const Tensor* right = nullptr;
  bool embedding = false;
};

class Settings {
 public:
  Settings(Attributes keys, std::string path) : keys_(std::move(keys)), path_(std::move(path)) {
    const std::string kind = text("peft_type").value_or("LORA");
    if (kind != "LORA") refuse(fmt::format("peft_type is {}, only LORA is supported", kind));
    for (const std::string_view key : {"use_dora", "use_qalora", "lora_bias"}) {
      if (is_true(key)) refuse(fmt::format("{} is true, only false is supported", key));
    }
    for (const std::string_view key : {"layer_replication", "megatron_config", "alora_invocation_tokens"}) {
      const Value* value = keys_.find(key);
      if (value != nullptr && *value != Value()) refuse(fmt::format("{} is not supported", key));
    }
    rank_ = whole("r");
    alpha_ = number("lora_alpha");
  }

  bool fan_in_fan_out() const { return is_true("fan_in_fan_out"); }

  // As in PEFT: the first pattern that equals the module's name, or its end after a dot, counts.
  std::uint64_t rank(std::string_view module) const {
    const Value* own = in_pattern("rank_pattern", module);
    if (own == nullptr) return rank_;
    const auto* found = own->get_if<std::uint64_t>();
    if (found == nullptr || *found == 0) fail(fmt::format("rank_pattern: {}: expected a positive integer", module));
    return *found;
  }
  double factor(std::string_view module) const {
    const Value* own = in_pattern("alpha_pattern", module);
    const double alpha = own == nullptr ? alpha_ : as_number(*own, "alpha_pattern");
    const auto divisor = static_cast<double>(rank(module));
    return alpha / (is_true("use_rslora") ? std::sqrt(divisor) : divisor);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw Error(ErrorKind::invalid_file, problem, path_); }
  [[noreturn]] void refuse(const std::string& problem) const { throw Error(ErrorKind::unsupported, problem, path_); }

  std::optional<std::string> text(std::string_view key) const {
    const Value* value = keys_.find(key);
    const auto* found = value == nullptr ? nullptr : value->get_if<std::string>();
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  bool is_true(std::string_view key) const {
    const Value* value = keys_.find(key);
    return value != nullptr && *value == Value(true);
  }
  double as_number(const Value& value, std::string_view key) const {
    double found = NAN;
    if (const auto* decimal = value.get_if<double>()) found = *decimal;
    if (const auto* integer = value.get_if<std::uint64_t>()) found = static_cast<double>(*integer);
    if (const auto* integer = value.get_if<std::int64_t>()) found = static_cast<double>(*integer);
    if (!std::isfinite(found)) fail(fmt::format("{}: expected a number", key));
    return found;
  }
  double number(std::string_view key) const {
    const Value* value = keys_.find(key);
    if (value == nullptr) fail(fmt::format("{} is missing", key));
    return as_number(*value, key);
  }
  std::uint64_t whole(std::string_view key) const {
    const double found = number(key);
    if (found < 1 || found > static_cast<double>(kMaxRank) || found != std::floor(found))
      fail(fmt::format("{} is {}, expected 1 to {}", key, found, kMaxRank));
    return static_cast<std::uint64_t>(found);
  }

  const Value* in_pattern(std::string_view key, std::string_view module) const {
    const Value* value = keys_.find(key);
    const auto* patterns = value == nullptr ? nullptr : value->get_if<Attributes>();
    if (patterns == nullptr) return nullptr;
    for (const auto& [pattern, own] : *patterns) {
      const std::string_view name =
          std::string_view(pattern).starts_with('^') ? std::string_view(pattern).substr(1) : std::string_view(pattern);
      const bool anchored = name.size() != pattern.size();
      if (name.find_first_of("*+?[](){}|\\^$") != std::string_view::npos)
        refuse(fmt::format("{}: the pattern \"{}\" is not a plain name, which is not supported", key, pattern));
      const bool is_whole = module == name;
      const bool is_end = !anchored && module.size() > name.size() && module.ends_with(name) &&
                          module[module.size() - name.size() - 1] == '.';
      if (is_whole || is_end) return &own;
    }
    return nullptr;
  }

  Attributes keys_;
  std::string path_;
  std::uint64_t rank_ = 0;
  double alpha_ = 0;
};

bool names_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Settings read_settings(const fs::path& directory) {
  const fs::path path = directory / kConfig;
  const SourcePtr source = Source::open(path, IoMode::read);
  if (source->size() > kMaxConfigBytes)
    throw Error(ErrorKind::invalid_file, fmt::format("{} bytes are too many for this file", source->size()),
                path.string());
  Value value = parse_json(read_text(*source, source->size()), path.string());
  if (value.get_if<Attributes>() == nullptr)
    throw Error(ErrorKind::invalid_file, "JSON: expected an object", path.string());
  return {std::move(value).take<Attributes>(), path.string()};
}

// Merges one adapter into a model.
class Merging {
 public:
  Merging(const Model& base, const LoraAdapter& adapter)
      : base_(base),
        family_(family_of(base)),
        directory_(names_directory(adapter.path) ? adapter.path : adapter.path.parent_path()),
        weights_path_(names_directory(adapter.path) ? directory_ / kWeights : adapter.path),
        settings_(read_settings(directory_)),
        weights_(open(weights_path_)),
        scale_(adapter.scale) {
    if (!std::isfinite(scale_)) throw Error(ErrorKind::bad_argument, fmt::format("a scale of {}", scale_));
  }

  Model merge() {
    for (const Tensor& tensor : weights_.tensors()) sort(tensor);
    std::map<const Tensor*, Tensor> changed;
    for (const auto& [module, pair] : pairs_) {
      if (const Tensor* matrix = fitting(module, pair)) changed.emplace(matrix, merged(*matrix, module, pair));
    }
    for (const auto& [name, tensor] : whole_) replace(name, *tensor, changed);
    if (changed.empty() && faults_.empty()) faults_.emplace_back("the adapter changes nothing");
    throw_faults(faults_, weights_path_.string());
    Model result(base_.header());
    for (const Tensor& tensor : base_.tensors()) {
      const auto found = changed.find(&tensor);
      result.add(found == changed.end() ? tensor : std::move(found->second));
    }
    result.origin.recipe.clear();
    for (const fs::path& file : {weights_path_, directory_ / kConfig}) result.origin.files.push_back(file);
    std::ranges::copy(weights_.warnings, std::back_inserter(result.warnings));
    return result;
  }

 private:
  void sort(const Tensor& tensor) {
    std::string_view name = tensor.name;
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    for (const Ending& ending : kEndings) {
      const auto at = name.find(ending.text);
      if (at == std::string_view::npos) continue;
      const std::string_view rest = name.substr(at + ending.text.size());
      if (!rest.empty() && rest != ".weight" && rest != ".default.weight" && rest != ".default") continue;
      Pair& pair = pairs_[std::string(name.substr(0, at))];
      const Tensor*& place = ending.left ? pair.left : pair.right;
      if (place != nullptr) add_fault(faults_, fmt::format("{} and {} are one matrix", place->name, tensor.name));
      place = &tensor;
      pair.embedding = ending.embedding;
      return;
    }
    if (name.find(".lora_") != std::string_view::npos)
      return add_fault(faults_, fmt::format("tensor {} is of a kind that is not supported", tensor.name));
    std::string plain(name);
    for (const std::string_view inner : {".modules_to_save.default", ".modules_to_save", ".base_layer"}) {
      if (const auto at = plain.find(inner); at != std::string::npos) plain.erase(at, inner.size());
    }
    whole_.emplace(plain, &tensor);
  }

  bool is_transposed(const Pair& pair) const { return pair.embedding || settings_.fan_in_fan_out(); }

  // Null after a fault.
  const Tensor* fitting(const std::string& module, const Pair& pair) {
    const auto fault = [&](const std::string& problem) {
      add_fault(faults_, fmt::format("{}: {}", module, problem));
      return nullptr;
    };
    if (pair.left == nullptr || pair.right == nullptr)
      return fault(fmt::format("lora_{} is missing", pair.left == nullptr ? 'B' : 'A'));
    const Tensor* matrix = find_weight(base_, family_, module + ".weight");
    if (matrix == nullptr) return fault("the model has no such matrix");
    for (const Tensor* tensor : {pair.left, pair.right}) {
      if (tensor->shape.size() != 2 || !has_float_elements(*tensor))
        return fault(fmt::format("{} is {} of shape {}, expected a matrix of numbers", tensor->name,
                                 storage_name(*tensor), to_string(tensor->shape)));
    }
    const std::uint64_t rank = settings_.rank(module);
    if (pair.left->shape[1] != rank || pair.right->shape[0] != rank)
      return fault(fmt::format("B is {} and A is {}, expected rank {}", to_string(pair.left->shape),
                               to_string(pair.right->shape), rank));
    Shape product = {pair.left->shape[0], pair.right->shape[1]};
    if (is_transposed(pair)) std::swap(product[0], product[1]);
    if (!(matrix->shape == product))
      return fault(fmt::format("B A is {}, the model's matrix is {}", to_string(product), to_string(matrix->shape)));
    if (!has_float_elements(*matrix))
      return fault(
          fmt::format("the model's matrix is stored as {}, which no numbers are made of", storage_name(*matrix)));
    return matrix;
  }

  Tensor merged(const Tensor& matrix, const std::string& module, const Pair& pair) const {
    const LowRank change = {*pair.left, *pair.right, is_transposed(pair),
                            static_cast<float>(scale_ * settings_.factor(module))};
    const DType type = matrix.layout == Layout::dense ? element_type(matrix) : DType::f32;
    const DType to = type == DType::f16 || type == DType::bf16 ? type : DType::f32;
    BlobPtr numbers = make_low_rank_blob(matrix, change);
    Tensor tensor = make_dense(matrix.name, matrix.shape, to,
                               make_cast_blob(matrix.name, std::move(numbers), DType::f32, matrix.elements(), to));
    if (matrix.layout == Layout::dense) tensor.attributes = matrix.attributes;
    return tensor;
  }

  void replace(const std::string& name, const Tensor& tensor, std::map<const Tensor*, Tensor>& changed) {
    const Tensor* own = find_weight(base_, family_, name);
    if (own == nullptr) return add_fault(faults_, fmt::format("{}: the model has no such tensor", tensor.name));
    if (!(own->shape == tensor.shape))
      return add_fault(faults_, fmt::format("{}: its shape is {}, the model's is {}", tensor.name,
                                            to_string(tensor.shape), to_string(own->shape)));
    Tensor renamed = tensor;
    renamed.name = own->name;
    if (!changed.emplace(own, std::move(renamed)).second)
      add_fault(faults_, fmt::format("{}: the adapter has thin matrices for it, too", tensor.name));
  }

  const Model& base_;
  const Family& family_;
  fs::path directory_;
  fs::path weights_path_;
  Settings settings_;
  Model weights_;
  double scale_;
  std::map<std::string, Pair> pairs_;  // by module
  std::map<std::string, const Tensor*> whole_;
  std::vector<std::string> faults_;
};

}  // namespace

Model with_lora(const Model& model, std::span<const LoraAdapter> adapters) {
  Model merged(model.header());
  for (const Tensor& tensor : model.tensors()) merged.add(tensor);
  for (const LoraAdapter& adapter : adapters) merged = Merging(merged, adapter).merge();
  return merged;
}

}  // namespace poise
