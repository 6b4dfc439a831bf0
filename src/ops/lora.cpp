#include "ops/lora.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>

#include "family/families.hpp"
#include "family/tied_output.hpp"
#include "formats/adapter.hpp"
#include "formats/format.hpp"
#include "model/fault_lists.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// Merges one adapter into a model.
class Merging {
 public:
  Merging(const Model& base, const LoraAdapter& given)
      : base_(base),
        family_(find_family_or_llama(base)),
        output_name_(family_.output),
        file_(open_adapter(given.path)),
        scale_(given.scale) {
    if (!std::isfinite(scale_))
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the scale of the adapter is {}, expected a finite number", scale_));
    adapter_ = require_adapter(file_, base);
    faults_ = std::move(adapter_.faults);
    if (base_.config && base_.config->tie_word_embeddings) tied_ = find_weight(base_, family_, family_.embedding);
    if (tied_ != nullptr && adapter_.keeps_ties && !changes_embedding()) output_name_ = tied_->name;
  }

  // Returns the merged model. Adds the types that MergedModel::types describes to `types`, unless an earlier adapter
  // has added them.
  Model merge(MergedTypes& types) {
    for (const Tensor& tensor : adapter_.whole) replace_tensor(tensor);
    std::vector<std::pair<const AdaptedMatrix*, Target>> targets;
    for (const AdaptedMatrix& matrix : adapter_.matrices) {
      auto target = find_target(matrix.name, matrix.file_name, "matrix");
      if (!target) continue;
      if (!adapted_.insert(target->name).second) {
        add_fault(faults_,
                  fmt::format("{}: the adapter has a second pair of matrices for {}", matrix.file_name, target->name));
        continue;
      }
      targets.emplace_back(&matrix, *std::move(target));
    }
    std::map<std::string, Tensor> changed = whole_;
    for (const auto& [matrix, target] : targets) {
      const Tensor& base = find_base(target);
      if (!is_fitting(*matrix, base)) continue;
      types.emplace(target.name, describe_stored_type(*target.own));
      changed.insert_or_assign(target.name, merge_matrix(target.name, base, *matrix));
    }
    throw_faults(faults_, file_.origin.path.string());
    for (const auto& [name, tensor] : whole_) {
      const Tensor* own = base_.find(name);
      if (own != nullptr && find_layout_type(own->layout).quantized) types.emplace(name, describe_stored_type(*own));
    }
    const std::string ends_tie = separate_output(changed);
    Model result(base_.header());
    for (const Tensor& tensor : base_.tensors()) {
      auto found = changed.extract(std::string(tensor.name));
      result.add(found.empty() ? tensor : std::move(found.mapped()));
    }
    for (auto& [name, tensor] : changed) result.add(std::move(tensor));
    std::ranges::copy(file_.origin.files, std::back_inserter(result.origin.files));
    std::ranges::copy(file_.warnings, std::back_inserter(result.warnings));
    for (const std::string& text : adapter_.deviations) warn(result, text);
    if (!ends_tie.empty()) {
      untie_output(result);
      warn(result, ends_tie);
    } else if (auto resolved = resolve_tied_output(result)) {
      result = *std::move(resolved);
    }
    return result;
  }

 private:
  void warn(Model& model, std::string text) const {
    model.warnings.push_back({Severity::warning, std::move(text), file_.origin.path.string(), std::nullopt});
  }

  // Names a tensor that the adapter changes.
  struct Target {
    std::string name;
    const Tensor* own;  // the model's tensor; for the output matrix of a tied model, the embedding
  };

  bool changes_embedding() const {
    const auto is_embedding = [&](std::string_view name) { return find_weight(base_, family_, name) == tied_; };
    return std::ranges::any_of(adapter_.matrices, is_embedding, &AdaptedMatrix::name) ||
           std::ranges::any_of(adapter_.whole, is_embedding, &Tensor::name);
  }

  // Finds the target of an adapter's tensor. Adds a fault and returns std::nullopt if the model has no such tensor.
  std::optional<Target> find_target(std::string_view name, std::string_view file_name, std::string_view kind) {
    if (const Tensor* own = find_weight(base_, family_, name)) return Target{own->name, own};
    if (tied_ != nullptr && name == family_.output) return Target{std::string(output_name_), tied_};
    add_fault(faults_, fmt::format("{}: the model has no such {}", file_name, kind));
    return std::nullopt;
  }

  // Returns the matrix to which the adapter's change is added: the adapter's copy if it has one, otherwise the model's.
  // (PEFT may save the embedding and the output matrix with an adapter.) For the output matrix of a tied model, it is
  // the adapter's copy of the embedding if the adapter has thin matrices for the embedding, too.
  const Tensor& find_base(const Target& target) const {
    const auto found = whole_.find(target.name);
    if (found != whole_.end()) return found->second;
    if (target.own == tied_) {
      const auto saved = whole_.find(std::string(tied_->name));
      if (saved != whole_.end() && adapted_.contains(std::string(tied_->name))) return saved->second;
    }
    return *target.own;
  }

  // Finds out whether the adapter changes the embedding and the output matrix differently, which ends their tie, as in
  // PEFT. If so, returns a warning, and adds the output matrix to `changed` if the adapter leaves it unchanged. Returns
  // an empty text if the tie stays, or there is no tie.
  std::string separate_output(std::map<std::string, Tensor>& changed) const {
    if (tied_ == nullptr) return {};
    const std::string input(tied_->name);
    const std::string output(family_.output);
    const bool changes_input = changed.contains(input);
    const bool changes_output = changed.contains(output);
    if (!changes_input && !changes_output) return {};
    if (changes_input && changes_output && !adapted_.contains(input) && !adapted_.contains(output)) return {};
    if (adapter_.keeps_ties && !changes_output) return {};
    if (!changes_output) {
      Tensor unchanged = find_base({output, tied_});
      unchanged.name = output;
      changed.emplace(output, std::move(unchanged));
    }
    const std::string_view what = !changes_output  ? "the input embedding alone"
                                  : !changes_input ? "the output matrix alone"
                                                   : "the input embedding and the output matrix by themselves";
    return fmt::format(
        "the adapter changes {}, but the model ties the two matrices: {} becomes a matrix of its own, and "
        "tie_word_embeddings becomes false",
        what, output);
  }

  // Returns true if the product of the adapter's matrices can be added to the model's; otherwise adds a fault.
  bool is_fitting(const AdaptedMatrix& matrix, const Tensor& base) {
    const auto add_problem = [&](const std::string& problem) {
      add_fault(faults_, fmt::format("{}: {}", matrix.file_name, problem));
      return false;
    };
    const Shape product = matrix.shape();
    if (!(base.shape == product))
      return add_problem(fmt::format("B A is {}, the model's matrix is {}", to_string(product), to_string(base.shape)));
    if (!has_float_elements(base))
      return add_problem(fmt::format("the model's matrix is stored as {}, which Poise cannot decode to numbers",
                                     describe_storage(base)));
    return std::isfinite(compute_factor(matrix)) || add_problem("the scale is too large for float32");
  }

  float compute_factor(const AdaptedMatrix& matrix) const {
    return static_cast<float>(scale_ * static_cast<double>(matrix.change.scale));
  }

  Tensor merge_matrix(const std::string& name, const Tensor& own, const AdaptedMatrix& matrix) const {
    LowRank change = matrix.change;
    change.scale = compute_factor(matrix);
    const bool is_double = own.layout == Layout::dense && find_element_type(own) == DType::f64;
    Tensor tensor = make_dense(name, own.shape, is_double ? DType::f64 : DType::f32, make_low_rank_blob(own, change));
    if (own.layout == Layout::dense) tensor.attributes = own.attributes;
    return tensor;
  }

  void replace_tensor(const Tensor& tensor) {
    const auto target = find_target(tensor.name, tensor.name, "tensor");
    if (!target) return;
    if (!(target->own->shape == tensor.shape))
      return add_fault(faults_, fmt::format("{}: its shape is {}, the model's is {}", tensor.name,
                                            to_string(tensor.shape), to_string(target->own->shape)));
    Tensor renamed = tensor;
    renamed.name = target->name;
    if (!whole_.emplace(target->name, std::move(renamed)).second)
      add_fault(faults_, fmt::format("{}: the adapter has it twice", tensor.name));
  }

  const Model& base_;
  const Family& family_;
  const Tensor* tied_ = nullptr;  // the embedding of a model that has no output matrix of its own
  std::string_view output_name_;  // the output matrix's name; the embedding's if the two change together
  Model file_;
  double scale_;
  Adapter adapter_;
  std::map<std::string, Tensor> whole_;  // tensors that the adapter stores whole, by the model's names
  std::set<std::string> adapted_;        // names of tensors that the adapter's thin matrices change
  std::vector<std::string> faults_;
};

}  // namespace

Adapter require_adapter(const Model& file, const Model& base) {
  auto found = parse_adapter(file, &base);
  if (!found) {
    throw Error(ErrorKind::invalid_file,
                "this is not an adapter: expected a directory with adapter_config.json and without model.safetensors, "
                "or a GGUF file whose general.type is \"adapter\"",
                file.origin.path.string());
  }
  try {
    throw_faults(found->refusals, file.origin.path.string());
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported, error.message(), error.path());
  }
  return *std::move(found);
}

void require_adapter_format(const Format& format) {
  // Formats with `edit` have attributes, which can hold adapter_config; directories have it as a file.
  if (format.edit != nullptr || choose_adapter_form(format).format == format.info.name) return;
  throw Error(
      ErrorKind::unsupported,
      fmt::format("{} files cannot hold the description of an adapter, without which no program reads it: choose gguf, "
                  "safetensors, zt or a directory",
                  format.info.name));
}

MergedModel merge_adapters(std::shared_ptr<const Model> model, std::span<const LoraAdapter> adapters) {
  MergedModel merged{std::move(model), {}};
  if (auto resolved = resolve_tied_output(*merged.model))
    merged.model = std::make_shared<const Model>(*std::move(resolved));
  for (const LoraAdapter& adapter : adapters)
    merged.model = std::make_shared<const Model>(Merging(*merged.model, adapter).merge(merged.types));
  return merged;
}

Model with_lora(const Model& model, std::span<const LoraAdapter> adapters) {
  const MergedModel merged = merge_adapters({std::shared_ptr<const Model>(), &model}, adapters);
  Model result(merged.model->header());
  result.origin.recipe.clear();
  for (const Tensor& tensor : merged.model->tensors()) {
    const auto own = merged.types.find(tensor.name);
    const auto type = own == merged.types.end() ? std::nullopt : stored_type_from_name(own->second);
    if (type && !type->quantized() && tensor.layout == Layout::dense && type->dtype != find_element_type(tensor)) {
      Tensor cast = make_dense(tensor.name, tensor.shape, type->dtype, make_dense_blob(tensor, type->dtype));
      cast.attributes = tensor.attributes;
      result.add(std::move(cast));
    } else {
      result.add(tensor);
    }
  }
  return result;
}

}  // namespace poise
