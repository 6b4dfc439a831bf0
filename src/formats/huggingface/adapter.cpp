#include "formats/huggingface/adapter.hpp"

#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "family/tensor_table.hpp"
#include "formats/huggingface/peft_config.hpp"
#include "model/fault_lists.hpp"
#include "syntax/json.hpp"

namespace poise::huggingface {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";

struct Ending {
  std::string_view text;
  bool left;       // true for B, the left factor of the product B A; false for A
  bool embedding;  // true if the product is transposed
};
// The adapter's own name, "default", may come before "weight".
constexpr std::array kEndings = std::to_array<Ending>({{".lora_A", false, false},
                                                       {".lora_B", true, false},
                                                       {".lora_embedding_A", false, true},
                                                       {".lora_embedding_B", true, true}});

struct Pair : ThinMatrices {
  bool embedding = false;
};

class Reading {
 public:
  // `base` is the model to change, or null if it is unknown.
  Reading(const Model& file, const Attributes& keys, const Model* base)
      : file_(file), base_(base), config_(keys, adapter_.faults, adapter_.refusals) {
    if (base != nullptr) plan_ = make_known_plan(*base);
  }

  Adapter read() {
    adapter_.base_model = config_.base_model();
    adapter_.alpha = config_.alpha();
    adapter_.keeps_ties = config_.ensure_weight_tying();
    is_sound_ = adapter_.faults.empty();
    for (const Tensor& tensor : file_.tensors()) collect_tensor(tensor);
    for (const auto& [module, pair] : pairs_) add_matrix(module, pair);
    if (pairs_.empty() && adapter_.whole.empty() && adapter_.faults.empty())
      adapter_.faults.emplace_back("the adapter has no matrices: expected lora_A and lora_B of a module");
    report_untargeted();
    report_other_order();
    return std::move(adapter_);
  }

 private:
  // Makes the tensor a part of a pair, or a whole tensor of the adapter.
  void collect_tensor(const Tensor& tensor) {
    std::string_view name = tensor.name;
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    for (const Ending& ending : kEndings) {
      const auto at = name.find(ending.text);
      if (at == std::string_view::npos) continue;
      const std::string_view rest = name.substr(at + ending.text.size());
      if (!rest.empty() && rest != ".weight" && rest != ".default.weight" && rest != ".default") continue;
      Pair& pair = pairs_[std::string(name.substr(0, at))];
      const Tensor*& place = ending.left ? pair.left : pair.right;
      if (place != nullptr)
        return report_fault(fmt::format("{} and {} name the same matrix", place->name, tensor.name));
      place = &tensor;
      pair.embedding = ending.embedding;
      return;
    }
    if (name.find(".lora_") != std::string_view::npos)
      return report_fault(fmt::format("tensor {} is of a kind that is not supported", tensor.name));
    std::string plain(name);
    for (const std::string_view inner : {".modules_to_save.default", ".modules_to_save", ".base_layer"}) {
      if (const auto at = plain.find(inner); at != std::string::npos) plain.erase(at, inner.size());
    }
    if (const auto [found, is_new] = whole_.emplace(plain, tensor.name); !is_new)
      return report_fault(fmt::format("{} and {} name the same tensor", found->second, tensor.name));
    adapter_.whole.push_back(tensor);
    adapter_.whole.back().name = plain;
  }

  void add_matrix(const std::string& module, const Pair& pair) {
    if (const auto problem = pair.find_fault("lora_B", "lora_A"))
      return report_fault(fmt::format("{}: {}", module, *problem));
    if (!is_utf8(module)) return report_fault(fmt::format("{}: the name is not UTF-8", module));
    try {
      const std::uint64_t rank = config_.find_rank(module);
      if (is_sound_ && pair.right->shape[0] != rank)
        return report_fault(fmt::format("{}: B is {} and A is {}, expected rank {}", module,
                                        to_string(pair.left->shape), to_string(pair.right->shape), rank));
      if (config_.is_target(module) == false) untargeted_.push_back(module);
      const std::string weight = module + ".weight";
      const bool transposed = pair.embedding || is_stored_in_out(weight, pair);
      if (!pair.embedding && transposed != config_.fan_in_fan_out()) other_order_.push_back(module);
      adapter_.matrices.push_back(
          {module, weight, {*pair.left, *pair.right, transposed, static_cast<float>(config_.find_factor(module))}});
    } catch (const Error& error) {  // a pattern takes too long
      if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::invalid_file) throw;
      report_fault(fmt::format("{}: {}", module, error.message()));
    }
  }

  // Returns true if the model stores a matrix as [in, out]. PEFT asks the module, not the configuration: a Conv1D of
  // GPT-2 holds [in, out], a Linear [out, in]. For an unknown family, the shape of the base's tensor decides. If it
  // cannot, or if the base is unknown, fan_in_fan_out decides.
  bool is_stored_in_out(const std::string& weight, const Pair& pair) const {
    if (base_ == nullptr) return config_.fan_in_fan_out();
    const Family& family = find_family_or_llama(*base_);
    if (plan_) return is_stored_transposed(*plan_, find_table_name(family, weight));
    const Tensor* own = find_weight(*base_, family, weight);
    const Shape product = {pair.left->shape[0], pair.right->shape[1]};
    const Shape turned = {product[1], product[0]};
    if (own == nullptr || product == turned || (own->shape != product && own->shape != turned))
      return config_.fan_in_fan_out();
    return own->shape == turned;
  }

  void report_other_order() {
    if (other_order_.empty()) return;
    const bool said = config_.fan_in_fan_out();
    adapter_.deviations.push_back(
        fmt::format("fan_in_fan_out is {}, but the model stores {} as {}: the order of the model is used, as in PEFT",
                    said, list_names(other_order_, 1), said ? "[out, in]" : "[in, out]"));
  }

  void report_untargeted() {
    if (untargeted_.empty()) return;
    adapter_.deviations.push_back(
        fmt::format("target_modules does not name {}: PEFT leaves {} out, Poise merges all tensors of the file",
                    list_names(untargeted_, 1), untargeted_.size() == 1 ? "it" : "them"));
  }

  void report_fault(std::string problem) { add_fault(adapter_.faults, std::move(problem)); }

  const Model& file_;
  const Model* base_;
  std::optional<DecoderPlan> plan_;  // the plan of the base model
  Adapter adapter_;
  PeftConfig config_;
  bool is_sound_ = true;                           // the configuration has no faults, so ranks are compared with it
  std::map<std::string, Pair> pairs_;              // the keys are the modules' names
  std::map<std::string, std::string_view> whole_;  // from the model's name of a tensor to the file's
  std::vector<std::string> untargeted_;
  std::vector<std::string> other_order_;  // modules whose order contradicts fan_in_fan_out
};

std::optional<Attributes> parse_adapter_config(const Model& model, UnheldNumbers& numbers) {
  const Value* value = model.attributes.find(kAdapterConfig);
  if (value == nullptr) return std::nullopt;
  if (const auto* keys = value->get_if<Attributes>()) return *keys;
  const auto fail = [&](std::string_view problem) {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", kAdapterConfig, problem), model.origin.path.string());
  };
  Value parsed;
  try {
    if (const auto* text = value->get_if<std::string>()) parsed = parse_json(*text, {}, numbers);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_file) throw;
    fail(error.message());
  }
  if (parsed.get_if<Attributes>() == nullptr) fail("JSON: expected an object");
  return std::move(parsed).take<Attributes>();
}

}  // namespace

std::optional<Attributes> find_adapter_config(const Model& model) {
  UnheldNumbers numbers;
  return parse_adapter_config(model, numbers);
}

std::optional<Adapter> read_peft_adapter(const Model& file, const Model* base) {
  UnheldNumbers numbers;
  try {
    const auto keys = parse_adapter_config(file, numbers);
    if (!keys) return std::nullopt;
    Adapter found = Reading(file, *keys, base).read();
    if (!numbers.non_finite.empty())
      found.deviations.push_back(fmt::format("{}: {} is not JSON: it is replaced with null", kAdapterConfig,
                                             fmt::join(numbers.non_finite, ", ")));
    return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_file) throw;
    Adapter faulty;
    faulty.faults.push_back(error.message());
    return faulty;
  }
}

}  // namespace poise::huggingface
