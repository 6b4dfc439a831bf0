// Makes adapters in PEFT's form (adapter.hpp).
#include "formats/huggingface/adapter.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "family/tensor_table.hpp"
#include "views/dense.hpp"
#include "views/strided.hpp"

namespace poise::huggingface {
namespace {

constexpr std::string_view kWeight = ".weight";

// Returns the key with the largest count (if several have it, the smallest key); `otherwise` if there are no keys.
template <typename Key>
Key find_most_frequent(const std::map<Key, std::size_t>& counts, Key otherwise) {
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? otherwise : most->first;
}

std::string find_last_word(std::string_view module) { return std::string(module.substr(module.rfind('.') + 1)); }

class Making {
 public:
  Making(const Adapter& adapter, const Model& base)
      : adapter_(adapter), base_(base), family_(find_family_or_llama(base)) {
    if (const auto plan = make_known_plan(base)) positions_ = plan->positions;
  }

  Model make() {
    if (!adapter_.whole.empty())
      throw Error(
          ErrorKind::unsupported,
          fmt::format("the adapter holds whole tensors ({}): they are not converted; merge the adapter into its "
                      "base instead",
                      adapter_.whole.front().name));
    for (const AdaptedMatrix& matrix : adapter_.matrices) {
      ++ranks_[matrix.rank()];
      ++alphas_[compute_alpha(matrix)];
    }
    rank_ = find_most_frequent<std::uint64_t>(ranks_, 1);
    alpha_ = find_most_frequent<double>(alphas_, 0);
    for (const AdaptedMatrix& matrix : adapter_.matrices) add(matrix);
    model_.attributes.set(std::string(kAdapterConfig), make_config());
    model_.card.base_model = adapter_.base_model;
    return std::move(model_);
  }

 private:
  void add(const AdaptedMatrix& matrix) {
    const std::string name = find_table_name(family_, matrix.name);
    if (!name.ends_with(kWeight))
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: PEFT adapts the weights of modules, whose names end in .weight", name));
    const std::string module = name.substr(0, name.size() - kWeight.size());
    const bool is_embedding = name == family_.embedding || name == positions_;
    LowRank change = matrix.change;
    if (is_embedding && !change.transposed) {
      std::swap(change.left, change.right);
      change.left = transpose_view(make_dense_tensor(change.left));
      change.right = transpose_view(make_dense_tensor(change.right));
    }
    if (!is_embedding && change.transposed) fan_in_fan_out_ = true;
    modules_.insert(module);
    if (matrix.rank() != rank_) rank_pattern_.emplace_back(module, matrix.rank());
    if (compute_alpha(matrix) != alpha_) alpha_pattern_.emplace_back(module, compute_alpha(matrix));
    const auto add_part = [&](Tensor tensor, std::string_view letter) {
      tensor.name = is_embedding ? fmt::format("base_model.model.{}.lora_embedding_{}", module, letter)
                                 : fmt::format("base_model.model.{}.lora_{}.weight", module, letter);
      model_.add(std::move(tensor));
    };
    add_part(std::move(change.right), "A");
    add_part(std::move(change.left), "B");
  }

  // Lists the last word of modules if the adapter changes all modules of the base with this word; otherwise, or if the
  // base has no tensors, lists their whole names.
  Value::Array list_targets() const {
    std::set<std::string> partial;
    for (const Tensor& tensor : base_.tensors()) {
      const std::string name = find_table_name(family_, tensor.name);
      if (!name.ends_with(kWeight)) continue;
      const std::string module = name.substr(0, name.size() - kWeight.size());
      if (!modules_.contains(module)) partial.insert(find_last_word(module));
    }
    std::set<std::string> targets;
    for (const std::string& module : modules_) {
      const std::string word = find_last_word(module);
      targets.insert(base_.size() == 0 || partial.contains(word) ? module : word);
    }
    return Value::Array(targets.begin(), targets.end());
  }

  static Value make_number(double number) {
    return number == std::floor(number) && std::abs(number) < 1e9 ? Value(static_cast<std::int64_t>(number))
                                                                  : Value(number);
  }

  Attributes make_config() {
    std::vector<Attributes::Entry> alphas;
    for (const auto& [module, alpha] : alpha_pattern_) alphas.emplace_back(module, make_number(alpha));
    return {{"peft_type", "LORA"},
            {"task_type", find_family(base_.card.model_type) == nullptr ? Value() : Value("CAUSAL_LM")},
            {"base_model_name_or_path", adapter_.base_model.empty() ? Value() : Value(adapter_.base_model)},
            {"r", rank_},
            {"lora_alpha", make_number(alpha_)},
            {"target_modules", list_targets()},
            {"rank_pattern", Attributes::from_unique(std::move(rank_pattern_))},
            {"alpha_pattern", Attributes::from_unique(std::move(alphas))},
            {"bias", "none"},
            {"fan_in_fan_out", fan_in_fan_out_},
            {"inference_mode", true},
            {"init_lora_weights", true},
            {"lora_dropout", 0.0},
            {"modules_to_save", Value()},
            {"use_dora", false},
            {"use_rslora", false}};
  }

  const Adapter& adapter_;
  const Model& base_;
  const Family& family_;
  std::string positions_;  // the name of the learned positions, an embedding; empty: the model has none
  Model model_;
  std::map<std::uint64_t, std::size_t> ranks_;
  std::map<double, std::size_t> alphas_;
  std::uint64_t rank_ = 1;
  double alpha_ = 0;
  bool fan_in_fan_out_ = false;
  std::set<std::string> modules_;
  std::vector<Attributes::Entry> rank_pattern_;
  std::vector<std::pair<std::string, double>> alpha_pattern_;
};

}  // namespace

Model make_peft_adapter(const Adapter& adapter, const Model& base) { return Making(adapter, base).make(); }

}  // namespace poise::huggingface
