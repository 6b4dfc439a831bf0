#include "family/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "bytes/short_text.hpp"
#include "family/config_effects.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "model/fault_lists.hpp"
#include "model/limits.hpp"

namespace poise {
namespace {

constexpr std::size_t kMaxConfigKeys = 1000;  // the most keys of the object that a family reads

// Names that begin so are llama.cpp's names of weights. The reader of GGUF gives the weights that a family has the
// names of transformers, so a weight that keeps such a name is one that the family lacks.
constexpr std::array kLlamaCppPrefixes = std::to_array<std::string_view>(
    {"blk.", "token_embd.", "token_embd_norm.", "position_embd.", "output.", "output_norm.", "rope_f"});

// Makes a fault of the model, or of the tensor of that name. `problem` follows the name in the message. `found` is null
// if the tensor is missing.
Finding make_fault(std::string problem, const std::string& tensor = {}, const Tensor* found = nullptr) {
  if (!tensor.empty()) problem = fmt::format("{} {}", format_tensor_start(tensor), problem);
  Finding fault{Severity::error, std::move(problem), {}, std::nullopt, tensor};
  if (found == nullptr) return fault;
  for (const Part& part : found->parts) {
    const auto at = part.blob->stored();
    if (!at) continue;
    fault.path = at->source->name();
    fault.offset = at->offset;
    return fault;
  }
  return fault;
}

void check_vocabulary(const Model& model, std::vector<Finding>& faults) {
  const Vocabulary& vocabulary = *model.vocabulary;
  const auto size = static_cast<std::int64_t>(vocabulary.size());
  const auto check_id = [&](std::string_view field, std::int64_t id) {
    if (id < -1 || id >= size)
      faults.push_back(make_fault(fmt::format("{} is {}, but the vocabulary has {} tokens", field, id, size)));
  };
  check_id("bos_id", vocabulary.bos_id);
  check_id("eos_id", vocabulary.eos_id);
  check_id("pad_id", vocabulary.pad_id);
  check_id("unk_id", vocabulary.unk_id);
}

// Returns the configuration's vocab_size, or the rows of the embedding if the format does not store vocab_size.
std::int64_t find_vocabulary_size(const Model& model) {
  if (model.config->vocab_size > 0) return model.config->vocab_size;
  return static_cast<std::int64_t>(count_embedded_tokens(model).value_or(0));
}

void check_tensors(const Model& model, const Family& family, std::vector<Finding>& faults) {
  Config config = *model.config;
  config.vocab_size = find_vocabulary_size(model);
  // Every layer has more than four tensors, so the number of tensors bounds the loop below.
  if (static_cast<std::uint64_t>(config.num_hidden_layers) > 16 + model.size() / 4) {
    faults.push_back(make_fault(fmt::format("num_hidden_layers is {}, but the model has only {}",
                                            config.num_hidden_layers, format_count(model.size(), "tensor"))));
    return;
  }
  const ConfigView view(config, find_family_keys(family, model.config_json), find_experts_stored(model, family));
  const auto check = [&](const std::vector<ExpectedTensor>& tensors) {
    for (const ExpectedTensor& expected : tensors) {
      const Tensor* tensor = find_weight(model, family, expected.name);
      if (tensor == nullptr && expected.name == family.output && lacks_output_matrix(model)) continue;
      if (tensor == nullptr) {
        add_fault(faults, make_fault(fmt::format("is missing: the configuration needs it with shape {}",
                                                 to_string(expected.shape)),
                                     expected.name));
      } else if (tensor->shape != expected.shape) {
        add_fault(faults, make_fault(fmt::format("has shape {}, the configuration needs {}", to_string(tensor->shape),
                                                 to_string(expected.shape)),
                                     tensor->name, tensor));
      }
    }
  };
  // This checks layer by layer and ends early: a layer may have many experts, and all of them may be missing.
  check(family.tensors.list_before_layers(view));
  for (std::int64_t layer = 0; layer < config.num_hidden_layers && faults.size() < kMostListedFaults; ++layer)
    check(family.tensors.list_layer(view, layer));
  check(family.tensors.list_after_layers(view));
  for (const Tensor& tensor : model.tensors()) {
    const auto layer = family.tensors.split_layer_name(find_table_name(family, tensor.name));
    if (layer && layer->number >= config.num_hidden_layers) {
      add_fault(faults, make_fault(fmt::format("belongs to layer {}, but num_hidden_layers is {}", layer->number,
                                               config.num_hidden_layers),
                                   tensor.name, &tensor));
    }
  }
}

}  // namespace

std::vector<std::string> check_config(const Config& config) {
  std::vector<std::string> faults;
  const auto check_positive = [&](std::string_view field, std::int64_t value, std::int64_t limit) {
    if (value < 1 || value > limit) faults.push_back(fmt::format("{} is {}, expected 1 to {}", field, value, limit));
  };
  check_positive("hidden_size", config.hidden_size, kMaxModelSize);
  check_positive("intermediate_size", config.intermediate_size, kMaxModelSize);
  check_positive("max_position_embeddings", config.max_position_embeddings, kMaxModelSize);
  check_positive("num_attention_heads", config.num_attention_heads, kMaxLayers);
  check_positive("num_key_value_heads", config.num_key_value_heads, kMaxLayers);
  check_positive("num_hidden_layers", config.num_hidden_layers, kMaxLayers);
  check_positive("head_dim", config.head_dim, kMaxLayers);
  if (config.vocab_size < 0 || config.vocab_size > kMaxModelSize)
    faults.push_back(fmt::format("vocab_size is {}, expected 0 to {}", config.vocab_size, kMaxModelSize));
  if (!faults.empty()) return faults;
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    faults.push_back(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                                 config.num_attention_heads, config.num_key_value_heads));
  }
  if (!std::isfinite(config.rope_theta) || config.rope_theta <= 0)
    faults.push_back(fmt::format("rope_theta is {}, expected a positive number", config.rope_theta));
  if (!std::isfinite(config.rms_norm_eps) || config.rms_norm_eps < 0)
    faults.push_back(fmt::format("rms_norm_eps is {}, expected a small positive number", config.rms_norm_eps));
  return faults;
}

std::vector<std::string> check_config(const ConfigView& view, const Family& family) {
  std::vector<std::string> faults = check_config(view.config);
  // Families search all keys again for each layer, which takes long if there are many.
  if (view.json.size() > kMaxConfigKeys)
    faults.push_back(
        fmt::format("the configuration has {} keys, at most {} are allowed", view.json.size(), kMaxConfigKeys));
  if (!faults.empty() || family.faults == nullptr) return faults;
  try {
    return family.faults(view);
  } catch (const Error& error) {  // a value of the wrong type
    return {error.message()};
  }
}

bool lacks_output_matrix(const Model& model) {
  const Family& family = find_family_or_llama(model);
  const bool needs_output = model.config && !model.config->tie_word_embeddings && !family.output.empty();
  if (!needs_output || find_weight(model, family, family.output) != nullptr) return false;
  const auto* classes = model.config_json.get_if<Value::Array>("architectures");
  const auto is_without_head = [](const Value& name) {
    const auto* text = name.get_if<std::string>();
    return text != nullptr && text->ends_with("Model") && !text->ends_with("LMHeadModel");
  };
  if (classes != nullptr && std::ranges::any_of(*classes, is_without_head)) return true;
  const Tensor* embedding = find_weight(model, family, family.embedding);
  return embedding != nullptr && embedding->name != family.embedding && family.nested.empty();
}

std::optional<std::size_t> count_embedded_tokens(const Model& model) {
  const Family& family = find_family_or_llama(model);
  const Tensor* embedding = find_weight(model, family, family.embedding);
  if (embedding == nullptr || embedding->shape.size() != 2) return std::nullopt;
  return static_cast<std::size_t>(embedding->shape[0]);
}

std::vector<std::string> list_shortcomings(const Model& model) {
  std::vector<std::string> sentences;
  const Family& family = find_family_or_llama(model);
  const auto rows = count_embedded_tokens(model);
  if (model.vocabulary && rows && model.vocabulary->size() > *rows) {
    sentences.push_back(
        fmt::format("the vocabulary has {} tokens, but {} only {} rows: tokens from {} on are never used",
                    model.vocabulary->size(), family.embedding, *rows, *rows));
  }
  if (lacks_output_matrix(model))
    sentences.push_back(
        fmt::format("tensor {} is missing: the model makes vectors (poise embed), and no text", family.output));
  return sentences;
}

std::vector<std::string> check_consistency(const Model& model) { return format_messages(find_inconsistencies(model)); }

std::vector<Finding> find_inconsistencies(const Model& model) {
  const Family& family = find_family_or_llama(model);
  std::vector<Finding> faults;
  if (model.config) {
    for (std::string& fault : check_config(make_config_view(model), family))
      faults.push_back(make_fault(std::move(fault)));
    const bool has_tensors = model.size() > 0 || model.origin.format == "huggingface";
    if (faults.empty() && has_tensors && !has_other_tensors(model)) {
      try {
        check_tensors(model, family, faults);
      } catch (const Error& error) {  // a value of the wrong type
        add_fault(faults, make_fault(error.message()));
      }
    }
  }
  if (model.vocabulary) check_vocabulary(model, faults);
  return faults;
}

std::optional<Error> find_run_refusal(const Model& model) {
  const std::string& type = model.card.model_type;
  if (!model.config || (!type.empty() && find_family(type) == nullptr)) return std::nullopt;
  const Family& family = find_family_or_llama(model);
  if (const auto effects = list_ignored_effects(model); !effects.empty())
    return Error(ErrorKind::unsupported, fmt::format("{}", fmt::join(effects, "; ")));
  std::vector<std::string_view> unknown = find_unknown_weights(model);
  std::optional<Error> refusal;
  try {
    std::erase(unknown, family.plan(make_config_view(model)).rope_divisors);  // the plan uses this tensor
  } catch (const Error& error) {
    refusal = error;
  }
  if (!unknown.empty())
    return Error(ErrorKind::unsupported, fmt::format("a {} model has no {}", family.title, list_names(unknown)));
  return refusal;
}

std::vector<std::string_view> find_unknown_weights(const Model& model) {
  const Family& family = find_family_or_llama(model);
  static const Config none;
  const ConfigView view = model.config ? make_config_view(model) : ConfigView(none);
  std::vector<std::string_view> unknown;
  for (const Tensor& tensor : model.tensors()) {
    const auto begins_name = [&](std::string_view prefix) { return tensor.name.starts_with(prefix); };
    const bool weight =
        std::ranges::any_of(family.prefixes, begins_name) || std::ranges::any_of(kLlamaCppPrefixes, begins_name);
    if (!weight || find_computed_tensor(family, tensor.name) != nullptr) continue;
    const std::string name = find_table_name(family, tensor.name);
    // A model with a tied output may store the output, too.
    if (name != family.output && !family.tensors.has(name, view)) unknown.push_back(tensor.name);
  }
  return unknown;
}

}  // namespace poise
