// Reads and makes llama.cpp's adapters (gguf.hpp).
#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "family/tensor_table.hpp"
#include "family/text_model.hpp"
#include "formats/gguf/changes.hpp"
#include "formats/gguf/header.hpp"
#include "model/fault_lists.hpp"
#include "syntax/element_value.hpp"
#include "views/dense.hpp"
#include "views/row_order.hpp"
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

// Returns one matrix of a stacked tensor. Requires: the tensor has three dimensions and floating-point elements.
Tensor slice_stack(const Tensor& stack, std::uint64_t number) {
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

class AdapterReader {
 public:
  AdapterReader(const Model& file, const Model* base) : file_(file), base_(base) {
    if (base == nullptr) return;
    const auto text = keep_text_model(Model(base->header()), WeightReader::llama_cpp, false);
    architecture_ = find_family_architecture(text ? text->model.card.model_type : base->card.model_type);
    if (!base->config) return;
    const auto convert_count = [](std::int64_t heads) { return heads > 0 ? static_cast<std::uint64_t>(heads) : 0; };
    heads_ = {convert_count(base->config->num_attention_heads), convert_count(base->config->num_key_value_heads)};
  }

  Adapter read() {
    read_keys();
    for (const Tensor& tensor : file_.tensors()) collect_tensor(tensor);
    for (const auto& [name, pair] : pairs_) add_pair(name, pair);
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

  void collect_tensor(const Tensor& tensor) {
    const std::string_view name = tensor.name;
    for (const std::string_view ending : {kLeft, kRight}) {
      if (!name.ends_with(ending)) continue;
      ThinMatrices& pair = pairs_[std::string(name.substr(0, name.size() - ending.size()))];
      (ending == kLeft ? pair.left : pair.right) = &tensor;
      return;
    }
    adapter_.whole.push_back(tensor);
  }

  void add_pair(const std::string& name, const ThinMatrices& pair) {
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

  // Returns why a pair does not fit together; std::nullopt if it does. The embedding's A is stored transposed.
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
      const Tensor left = slice_stack(*pair.left, i);
      const Tensor right = slice_stack(*pair.right, i);
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

constexpr double kMostAlpha = static_cast<double>(std::numeric_limits<float>::max());

// Returns float32 numbers times a factor. Reading throws unsupported if a product is too large for float32.
BlobPtr scale_numbers(const Tensor& tensor, float factor) {
  const auto compute = [name = tensor.name, factor](const Blob& numbers, std::span<const LoadedBlob> /*kept*/,
                                                    std::uint64_t first, std::span<float> out) {
    numbers.read(first * sizeof(float), std::as_writable_bytes(out));
    for (float& number : out) {
      const bool was_finite = std::isfinite(number);
      number *= factor;
      if (was_finite && !std::isfinite(number))
        throw Error(ErrorKind::unsupported,
                    fmt::format("tensor {}: a number times {} is too large for float32", name, factor));
    }
  };
  return make_float_blob(tensor.elements(), make_dense_blob(tensor, DType::f32), {}, compute);
}

// Holds the thin matrices of one of llama.cpp's tensors: one pair, or one for each expert.
struct Pairs {
  std::map<std::uint64_t, std::pair<Tensor, Tensor>> by_expert;  // A and B
  bool is_stack = false;
};

class AdapterMaker {
 public:
  // `family` has the names of the adapter's matrices; `base` is the base or, if the base is multimodal, its text model.
  AdapterMaker(const Adapter& adapter, const Model& base, const Family& family)
      : adapter_(adapter), base_(base), family_(family), architecture_(find_family_architecture(base.card.model_type)) {
    if (architecture_ == nullptr)
      throw Error(ErrorKind::unsupported, fmt::format("Poise does not know llama.cpp's names for {} models",
                                                      base.card.model_type.empty() ? "other" : base.card.model_type));
    if (!base.config)
      throw Error(ErrorKind::unsupported, "the base has no configuration, on which the order of rows in GGUF depends");
    hyperparameters_ = make_hyperparameters(base, *architecture_);
  }

  Model make() {
    require_thin_matrices_alone();
    require_applied_matrices();
    choose_alpha();
    std::vector<std::string_view> strangers;
    for (const AdaptedMatrix& matrix : adapter_.matrices) {
      if (const auto name = find_gguf_name(*architecture_, find_table_name(family_, matrix.name))) {
        add_matrix(matrix, *name);
      } else {
        strangers.push_back(matrix.name);
      }
    }
    if (!strangers.empty())
      throw Error(ErrorKind::unsupported, fmt::format("llama.cpp has no name for {} in {} models",
                                                      list_names(strangers), base_.card.model_type));
    for (const std::string& name : order_) add_tensors(name);
    add_keys();
    return std::move(model_);
  }

 private:
  void require_thin_matrices_alone() const {
    if (!adapter_.whole.empty())
      throw Error(ErrorKind::unsupported,
                  fmt::format("the adapter holds whole tensors ({}), which llama.cpp does not load from an adapter: "
                              "merge it into its base instead",
                              adapter_.whole.front().name));
  }

  // Throws unsupported for matrices whose adapters llama.cpp does not apply. llama.cpp has no output matrix in a tied
  // model. It stops at an adapter of a tied embedding, because it reads A of an embedding transposed. It ignores
  // adapters of learned positions.
  void require_applied_matrices() const {
    const bool is_tied = base_.config->tie_word_embeddings;
    const std::optional<DecoderPlan> plan = make_known_plan(base_);
    for (const AdaptedMatrix& matrix : adapter_.matrices) {
      const std::string name = find_table_name(family_, matrix.name);
      std::string_view reason;
      if (is_tied && name == family_.output) {
        reason = "which is the embedding in this base: llama.cpp has no such matrix";
      } else if (is_tied && name == family_.embedding) {
        reason = "which is the output matrix, too, in this base: llama.cpp stops at such an adapter";
      } else if (plan && !plan->positions.empty() && name == plan->positions) {
        reason = "learned positions: llama.cpp adds no adapter to them";
      } else {
        continue;
      }
      throw Error(ErrorKind::unsupported, fmt::format("the adapter changes {}, {}; merge the adapter into its base "
                                                      "instead",
                                                      name, reason));
    }
  }

  // Chooses the most frequent alpha of the matrices. Leaves out 0, which means "no scale" to llama.cpp, and numbers too
  // large for float32, at which llama.cpp stops. Chooses 1 if no alpha remains.
  void choose_alpha() {
    std::map<double, std::size_t> counts;
    for (const AdaptedMatrix& matrix : adapter_.matrices) {
      const double alpha = compute_alpha(matrix);
      if (alpha != 0 && std::abs(alpha) <= kMostAlpha) ++counts[alpha];
    }
    const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    alpha_ = most == counts.end() ? 1 : most->first;
  }

  void add_matrix(const AdaptedMatrix& matrix, const TensorName& name) {
    if (name.change == Change::plus_one)
      throw Error(ErrorKind::unsupported, fmt::format("{}: llama.cpp has no matrix of this name", matrix.name));
    Tensor left = matrix.change.left;
    Tensor right = matrix.change.right;
    const auto transpose_both = [&] {
      std::swap(left, right);
      left = transpose_view(make_dense_tensor(left));
      right = transpose_view(make_dense_tensor(right));
    };
    if (name.name == kEmbedding) {
      // In the file, both matrices of the embedding belong to its transpose, and A is transposed once more.
      if (!matrix.change.transposed) transpose_both();
      right = transpose_view(make_dense_tensor(right));
    } else if (matrix.change.transposed != (name.change == Change::transposed)) {
      transpose_both();
    }
    if (name.change == Change::queries || name.change == Change::keys)
      left = apply_change(make_dense_tensor(left), name.change, hyperparameters_.heads);
    const double ratio = compute_alpha(matrix) / alpha_;
    if (!(std::abs(ratio) <= kMostAlpha))
      throw Error(ErrorKind::unsupported, fmt::format("{}: its alpha is {}, which is too large for float32 next to {}",
                                                      matrix.name, compute_alpha(matrix), alpha_));
    const auto factor = static_cast<float>(ratio);
    if (factor != 1) left = make_dense(left.name, left.shape, DType::f32, scale_numbers(left, factor));
    Pairs& pairs = pairs_[name.name];
    if (pairs.by_expert.empty()) order_.push_back(name.name);
    pairs.is_stack = name.expert.has_value();
    if (!pairs.by_expert.emplace(name.expert.value_or(0), std::pair(std::move(right), std::move(left))).second)
      throw Error(ErrorKind::invalid_file, fmt::format("{}: the adapter has it twice", matrix.name));
  }

  void add_tensors(const std::string& name) {
    Pairs& pairs = pairs_.at(name);
    if (pairs.is_stack) return add_stack(name, pairs);
    auto& [right, left] = pairs.by_expert.begin()->second;
    right.name = name + ".lora_a";
    left.name = name + ".lora_b";
    model_.add(std::move(right));
    model_.add(std::move(left));
  }

  void add_stack(const std::string& name, Pairs& pairs) {
    const std::uint64_t experts = count_experts();
    std::vector<Tensor> rights;
    std::vector<Tensor> lefts;
    const Shape shape = pairs.by_expert.begin()->second.first.shape;
    for (auto& [expert, pair] : pairs.by_expert) {
      if (expert != rights.size() || pair.first.shape != shape) break;
      rights.push_back(std::move(pair.first));
      lefts.push_back(std::move(pair.second));
    }
    if (rights.size() != experts)
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: llama.cpp has the matrices of all {} experts in one tensor, so the adapter needs a "
                              "pair of one rank for each; that of expert {} is missing or has another rank",
                              name, experts, rights.size()));
    for (auto* stack : {&rights, &lefts}) {
      Tensor tensor = stack_tensors(*stack);
      tensor.name = name + (stack == &rights ? ".lora_a" : ".lora_b");
      model_.add(std::move(tensor));
    }
  }

  std::uint64_t count_experts() const {
    const std::string key = fmt::format("{}.expert_count", architecture_->name);
    const auto entry = std::ranges::find(hyperparameters_.entries, key, &Attributes::Entry::first);
    const auto* count = entry == hyperparameters_.entries.end() ? nullptr : entry->second.get_if<std::uint64_t>();
    return count == nullptr ? 0 : *count;
  }

  void add_keys() {
    model_.card.model_type = architecture_->name;
    model_.attributes.set("general.type", "adapter");
    model_.attributes.set("adapter.type", "lora");
    model_.attributes.set("adapter.lora.alpha", alpha_);
    model_.origin.attribute_types["adapter.lora.alpha"] = "f32";
    if (!adapter_.base_model.empty()) {
      model_.attributes.set("general.base_model.count", std::uint64_t{1});
      model_.origin.attribute_types["general.base_model.count"] = "u32";
      model_.attributes.set("general.base_model.0.name", adapter_.base_model);
    }
  }

  const Adapter& adapter_;
  const Model& base_;
  const Family& family_;
  const Architecture* architecture_;
  Hyperparameters hyperparameters_;
  double alpha_ = 1;
  std::map<std::string, Pairs> pairs_;
  std::vector<std::string> order_;  // the names in pairs_, in the order of the adapter
  Model model_;
};

}  // namespace

std::optional<Adapter> read_adapter(const Model& file, const Model* base) {
  if (find_text_attribute(file, "general.type") != "adapter") return std::nullopt;
  return AdapterReader(file, base).read();
}

Model make_adapter(const Adapter& adapter, const Model& base) {
  const auto text = keep_text_model(Model(base.header()), WeightReader::llama_cpp, false);
  return AdapterMaker(adapter, text ? text->model : base, find_family_or_llama(base)).make();
}

}  // namespace poise::gguf
