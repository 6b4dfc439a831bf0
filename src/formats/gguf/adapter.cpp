#include "formats/gguf/gguf.hpp"

#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "family/check.hpp"
#include "formats/gguf/changes.hpp"
#include "formats/gguf/header.hpp"
#include "syntax/element_value.hpp"
#include "views/dense.hpp"
#include "views/strided.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kLeft = ".lora_b";
constexpr std::string_view kRight = ".lora_a";

std::string find_text_attribute(const Model& file, std::string_view key) {
  const auto* text = file.attributes.get_if<std::string>(key);
  return text == nullptr ? std::string() : *text;
}

std::string find_base_model(const Model& file) {
  for (const std::string_view key : {"general.base_model.0.repo_url", "general.base_model.0.name"}) {
    if (std::string text = find_text_attribute(file, key); !text.empty()) return text;
  }
  return file.card.base_model;
}

// Returns one matrix of a stacked tensor. Requires: the tensor has three dimensions, and numbers.
Tensor make_stacked_matrix(const Tensor& stack, std::uint64_t number) {
  const Tensor dense = make_dense_tensor(stack);
  const Part& data = dense.require("data");
  const unsigned item = info(data.dtype).bits / 8;
  const Shape shape(stack.shape.begin() + 1, stack.shape.end());
  const std::uint64_t bytes = *element_count(shape) * item;
  return make_dense(stack.name, shape, data.dtype,
                    make_strided_blob(data.blob, {.shape = shape,
                                                  .strides = compute_row_major_strides(shape, item),
                                                  .offset = number * bytes,
                                                  .item_bytes = item}));
}

class Reading {
 public:
  Reading(const Model& file, const Model* base) : file_(file), base_(base) {
    if (base == nullptr) return;
    architecture_ = find_family_architecture(base->card.model_type);
    if (!base->config) return;
    const auto count = [](std::int64_t heads) { return heads > 0 ? static_cast<std::uint64_t>(heads) : 0; };
    heads_ = {count(base->config->num_attention_heads), count(base->config->num_key_value_heads)};
  }

  Adapter read() {
    read_keys();
    for (const Tensor& tensor : file_.tensors()) sort_tensor(tensor);
    for (const auto& [name, pair] : pairs_) add(name, pair);
    if (pairs_.empty() && adapter_.whole.empty() && adapter_.faults.empty())
      adapter_.faults.emplace_back(
          "the adapter has no matrices: expected tensors whose names end in .lora_a and .lora_b");
    return std::move(adapter_);
  }

 private:
  void read_keys() {
    adapter_.base_model = find_base_model(file_);
    if (const std::string kind = find_text_attribute(file_, "adapter.type"); kind != "lora")
      adapter_.refusals.push_back(fmt::format("adapter.type: only \"lora\" is supported, found \"{}\"", kind));
    if (file_.attributes.find("adapter.alora.invocation_tokens") != nullptr)
      adapter_.refusals.emplace_back("adapter.alora.invocation_tokens is not supported");
    if (const Value* value = file_.attributes.find("adapter.lora.alpha")) {
      // A file of another format may hold all attributes as texts.
      const auto* text = is_from_gguf(file_) ? nullptr : value->get_if<std::string>();
      const auto alpha = text == nullptr ? convert_to_double(value) : parse_number_text<double>(*text);
      if (!alpha || !std::isfinite(*alpha)) {
        report(fmt::format("adapter.lora.alpha: expected a number, found {}", to_json(*value)));
      } else {
        adapter_.alpha = *alpha;
      }
    }
    if (base_ == nullptr) return;
    const std::string_view architecture = architecture_ == nullptr ? base_->card.model_type : architecture_->name;
    if (!file_.card.model_type.empty() && file_.card.model_type != architecture)
      report(fmt::format("general.architecture: expected that of the model, {}, found {}", architecture,
                         file_.card.model_type));
  }

  void sort_tensor(const Tensor& tensor) {
    const std::string_view name = tensor.name;
    for (const std::string_view ending : {kLeft, kRight}) {
      if (!name.ends_with(ending)) continue;
      ThinMatrices& pair = pairs_[std::string(name.substr(0, name.size() - ending.size()))];
      (ending == kLeft ? pair.left : pair.right) = &tensor;
      return;
    }
    adapter_.whole.push_back(tensor);
  }

  void add(const std::string& name, const ThinMatrices& pair) {
    TensorName known{name};
    if (architecture_ != nullptr) {
      if (auto found = find_poise_name(*architecture_, name)) known = *std::move(found);
    }
    try {
      if (is_stack(pair)) return add_stack(name, known, pair);
      if (const auto problem = find_pair_fault(name, pair)) return report(fmt::format("{}: {}", name, *problem));
      add_matrix(name, known, *pair.left, *pair.right);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      report(fmt::format("{}: {}", name, error.message()));
    }
  }

  // Returns why a pair does not fit together. The embedding's A is stored transposed.
  static std::optional<std::string> find_pair_fault(const std::string& name, const ThinMatrices& pair) {
    if (name != kEmbedding || pair.right == nullptr || pair.right->shape.size() != 2)
      return pair.find_fault("lora_b", "lora_a");
    Tensor right = *pair.right;
    std::swap(right.shape[0], right.shape[1]);
    return ThinMatrices{pair.left, &right}.find_fault("lora_b", "lora_a transposed");
  }

  static bool is_stack(const ThinMatrices& pair) {
    return pair.left != nullptr && pair.right != nullptr && pair.left->shape.size() == 3 &&
           pair.right->shape.size() == 3 && has_float_elements(*pair.left) && has_float_elements(*pair.right);
  }

  void add_stack(const std::string& name, const TensorName& known, const ThinMatrices& pair) {
    const std::uint64_t experts = pair.left->shape[0];
    if (experts != pair.right->shape[0] || experts > kMaxExperts)
      return report(
          fmt::format("{}: lora_b is {} and lora_a is {}, expected the same number of experts in both, at most {}",
                      name, poise::to_string(pair.left->shape), poise::to_string(pair.right->shape), kMaxExperts));
    if (base_ != nullptr && known.change != Change::stacked)
      return report(fmt::format("{}: the model has no such stacked matrices", name));
    for (std::uint64_t i = 0; i < experts; ++i) {
      const Tensor left = make_stacked_matrix(*pair.left, i);
      const Tensor right = make_stacked_matrix(*pair.right, i);
      if (const auto problem = ThinMatrices{&left, &right}.find_fault("lora_b", "lora_a"))
        return report(fmt::format("{}: {}", name, *problem));
      const std::string expert = base_ == nullptr ? name : make_expert_name(known.name, i);
      add_matrix(name, {expert}, left, right);
    }
  }

  void add_matrix(const std::string& name, const TensorName& known, Tensor left, Tensor right) {
    bool is_transposed = known.change == Change::transposed;
    if (known.change == Change::plus_one || known.change == Change::stacked)
      return report(fmt::format("{}: the model has no such matrix", name));
    if (name == kEmbedding) {
      right = transpose_view(make_dense_tensor(right));
      is_transposed = !is_transposed;
    }
    const auto rank = static_cast<double>(left.shape[1]);
    const double factor = adapter_.alpha == 0 ? 1 : adapter_.alpha / rank;
    if (known.change == Change::queries || known.change == Change::keys)
      left = *undo_change(std::move(left), known.change, heads_);
    const std::string canonical = known.expert ? make_expert_name(known.name, *known.expert) : known.name;
    adapter_.matrices.push_back(
        {name, canonical, {std::move(left), std::move(right), is_transposed, static_cast<float>(factor)}});
  }

  void report(std::string problem) { add_fault(adapter_.faults, std::move(problem)); }

  const Model& file_;
  const Model* base_;
  const Architecture* architecture_ = nullptr;  // the architecture of the base; null: names stay
  Heads heads_;
  Adapter adapter_;
  std::map<std::string, ThinMatrices> pairs_;
};

}  // namespace

std::optional<Adapter> read_adapter(const Model& file, const Model* base) {
  if (find_text_attribute(file, "general.type") != "adapter") return std::nullopt;
  return Reading(file, base).read();
}

}  // namespace poise::gguf
