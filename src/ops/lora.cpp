#include <poise/lora.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/adapter.hpp"
#include "formats/format.hpp"
#include "views/cast.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

// Merges one adapter into a model.
class Merging {
 public:
  Merging(const Model& base, const LoraAdapter& given)
      : base_(base), family_(family_of(base)), file_(open_adapter(given.path)), scale_(given.scale) {
    if (!std::isfinite(scale_)) throw Error(ErrorKind::bad_argument, fmt::format("a scale of {}", scale_));
    auto found = adapter_in(file_, &base);
    if (!found) {
      throw Error(ErrorKind::invalid_file,
                  "this is not an adapter: a directory of one has adapter_config.json and no model.safetensors, a GGUF "
                  "file of one has general.type \"adapter\"",
                  file_.origin.path.string());
    }
    adapter_ = *std::move(found);
    throw_list(ErrorKind::unsupported, adapter_.refusals);
    faults_ = std::move(adapter_.faults);
  }

  Model merge() {
    std::map<const Tensor*, Tensor> changed;
    for (const Tensor& tensor : adapter_.whole) replace(tensor, changed);
    // PEFT saves the base's embedding and output matrix with an adapter of them, and adds to these.
    std::set<const Tensor*> adapted;
    for (const AdaptedMatrix& matrix : adapter_.matrices) {
      const Tensor* own = find(matrix.name, matrix.file_name, "matrix");
      if (own == nullptr) continue;
      const auto replaced = changed.find(own);
      const Tensor& base = replaced == changed.end() ? *own : replaced->second;
      if (!adapted.insert(own).second) {
        add_fault(faults_, fmt::format("{}: the adapter has thin matrices for {} twice", matrix.file_name, own->name));
      } else if (fits(matrix, base)) {
        Tensor sum = merged(base, matrix);
        changed.insert_or_assign(own, std::move(sum));
      }
    }
    throw_list(ErrorKind::invalid_file, faults_);
    Model result(base_.header());
    for (const Tensor& tensor : base_.tensors()) {
      const auto found = changed.find(&tensor);
      result.add(found == changed.end() ? tensor : std::move(found->second));
    }
    result.origin.recipe.clear();
    std::ranges::copy(file_.origin.files, std::back_inserter(result.origin.files));
    std::ranges::copy(file_.warnings, std::back_inserter(result.warnings));
    for (const std::string& text : adapter_.deviations)
      result.warnings.push_back({Severity::warning, text, file_.origin.path.string(), std::nullopt});
    return result;
  }

 private:
  void throw_list(ErrorKind kind, const std::vector<std::string>& problems) const {
    try {
      throw_faults(problems, file_.origin.path.string());
    } catch (const Error& error) {
      throw Error(kind, error.message(), error.path());
    }
  }

  // The model's tensor. Null after a fault.
  const Tensor* find(std::string_view name, std::string_view file_name, std::string_view kind) {
    const Tensor* own = find_weight(base_, family_, name);
    if (own != nullptr) return own;
    const bool is_tied = base_.config && base_.config->tie_word_embeddings && name == family_.output;
    add_fault(faults_, fmt::format("{}: the model has no such {}{}", file_name, kind,
                                   is_tied ? ": its embedding is its output matrix, too (tie_word_embeddings)" : ""));
    return nullptr;
  }

  // Adds a fault otherwise.
  bool fits(const AdaptedMatrix& matrix, const Tensor& base) {
    const auto fault = [&](const std::string& problem) {
      add_fault(faults_, fmt::format("{}: {}", matrix.file_name, problem));
      return false;
    };
    const Shape product = matrix.shape();
    if (!(base.shape == product))
      return fault(fmt::format("B A is {}, the model's matrix is {}", to_string(product), to_string(base.shape)));
    if (!has_float_elements(base))
      return fault(fmt::format("the model's matrix is stored as {}, which no numbers are made of", storage_name(base)));
    return std::isfinite(factor(matrix)) || fault("the scale is too large for float32");
  }

  float factor(const AdaptedMatrix& matrix) const {
    return static_cast<float>(scale_ * static_cast<double>(matrix.change.scale));
  }

  Tensor merged(const Tensor& own, const AdaptedMatrix& matrix) const {
    LowRank change = matrix.change;
    change.scale = factor(matrix);
    const DType type = own.layout == Layout::dense ? element_type(own) : DType::f32;
    const bool keeps = type == DType::f64 || type == DType::f16 || type == DType::bf16;
    const DType to = keeps ? type : DType::f32;
    BlobPtr numbers = make_low_rank_blob(own, change);
    Tensor tensor = make_dense(own.name, own.shape, to,
                               make_cast_blob(own.name, std::move(numbers), DType::f32, own.elements(), to));
    if (own.layout == Layout::dense) tensor.attributes = own.attributes;
    return tensor;
  }

  void replace(const Tensor& tensor, std::map<const Tensor*, Tensor>& changed) {
    const Tensor* own = find(tensor.name, tensor.name, "tensor");
    if (own == nullptr) return;
    if (!(own->shape == tensor.shape))
      return add_fault(faults_, fmt::format("{}: its shape is {}, the model's is {}", tensor.name,
                                            to_string(tensor.shape), to_string(own->shape)));
    Tensor renamed = tensor;
    renamed.name = own->name;
    if (!changed.emplace(own, std::move(renamed)).second)
      add_fault(faults_, fmt::format("{}: the adapter has it twice", tensor.name));
  }

  const Model& base_;
  const Family& family_;
  Model file_;
  double scale_;
  Adapter adapter_;
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
