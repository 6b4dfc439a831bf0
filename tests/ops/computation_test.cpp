// A model computes the same after conversion to any format, or the conversion reports the difference first, or refuses.
// Each family, with each of the keys of config.json that change how it computes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/model.hpp>
#include <poise/values.hpp>
#include <poise/weights.hpp>

#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/config_json.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "formats/format.hpp"
#include "ops/check_headers.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

struct Case {
  std::string_view model_type;
  std::string_view keys;  // of config.json, besides those of small_model()
};

constexpr std::string_view kLlama3 =
    R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64})";
constexpr std::string_view kLongrope = R"("original_max_position_embeddings": 64, "rope_scaling": {"type": "longrope",
    "short_factor": [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75], "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]})";
constexpr std::string_view kYarn =
    R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})";

const Case kCases[] = {
    {"llama", ""},
    {"llama", R"("attention_bias": true, "mlp_bias": true)"},
    {"llama", R"("tie_word_embeddings": true)"},
    {"llama", R"("head_dim": 24, "rope_theta": 500000.0, "rms_norm_eps": 0.001)"},
    {"llama", kLlama3},
    {"llama", kLongrope},
    {"llama", kYarn},
    {"llama", R"("rope_scaling": {"type": "linear", "factor": 2.5})"},
    {"llama", R"("rope_scaling": {"type": "dynamic", "factor": 4.0})"},
    {"llama", R"("rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0})"},
    {"llama",
     R"("rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 16, "beta_slow": 2, "attention_factor": 0.9, "truncate": false})"},
    {"mistral", R"("sliding_window": 8)"},
    {"mistral", R"("sliding_window": null)"},
    {"mistral", ""},
    {"mistral3", R"("sliding_window": 8, "head_dim": 8)"},
    {"mixtral", R"("num_local_experts": 3, "num_experts_per_tok": 2)"},
    {"mixtral", R"("num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": 8)"},
    {"qwen2", ""},
    {"qwen2", R"("use_sliding_window": false, "sliding_window": 8, "max_window_layers": 2)"},
    {"qwen2", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 2)"},
    {"qwen2", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 0)"},
    {"qwen2", R"("use_sliding_window": true, "sliding_window": 8)"},
    {"qwen2", R"("use_sliding_window": true, "sliding_window": 8, "num_hidden_layers": 30)"},
    {"qwen2",
     R"("use_sliding_window": true, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention"])"},
    {"qwen2", R"("use_sliding_window": true, "sliding_window": 8, "layer_types":
        ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"])"},
    {"qwen3", ""},
    {"qwen3", R"("attention_bias": true, "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 1)"},
    {"qwen3_moe", R"("num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": true)"},
    {"qwen3_moe",
     R"("num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": false)"},
    {"qwen3_moe",
     R"("num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "mlp_only_layers": [1], "decoder_sparse_step": 2)"},
    {"qwen3_moe",
     R"("num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "use_sliding_window": true, "sliding_window": 8)"},
    {"gemma", ""},
    {"gemma", R"("hidden_act": "gelu")"},
    {"gemma", R"("hidden_activation": "silu")"},
    {"gemma", R"("hidden_activation": "relu", "attention_bias": true)"},
    {"gemma2", R"("sliding_window": 8)"},
    {"gemma2", R"("sliding_window": 8, "attn_logit_softcapping": null, "final_logit_softcapping": null)"},
    {"gemma2", R"("sliding_window": 8, "attn_logit_softcapping": null, "query_pre_attn_scalar": 16)"},
    {"gemma2", R"("sliding_window": 8, "layer_types":
        ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"])"},
    {"gemma2",
     R"("sliding_window": 8, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 24)"},
    {"gemma2",
     R"("sliding_window": 8, "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"])"},
    {"gemma3_text", R"("sliding_window": 8)"},
    {"gemma3_text",
     R"("sliding_window": 8, "sliding_window_pattern": 2, "rope_local_base_freq": 5000.0, "query_pre_attn_scalar": 24)"},
    {"gemma3_text",
     R"("sliding_window": 8, "final_logit_softcapping": 3.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0})"},
    {"gemma3_text",
     R"("sliding_window": 8, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 50000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}})"},
    {"gemma3_text", R"("sliding_window": null, "layer_types":
        ["full_attention", "full_attention", "full_attention", "full_attention"])"},
    {"gemma3",
     R"("sliding_window": 8, "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"])"},
    {"phi3", ""},
    {"phi3", R"("partial_rotary_factor": 0.5, "sliding_window": 8)"},
    {"phi3", kLongrope},
    {"olmo2", ""},
    {"olmo2", R"("attention_bias": true)"},
    {"smollm3", ""},
    {"smollm3", R"("no_rope_layers": [1, 0, 1, 0], "tie_word_embeddings": false)"},
    {"smollm3", R"("no_rope_layer_interval": 2, "use_sliding_window": true, "sliding_window": 8)"},
    {"gpt2", R"("n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4)"},
    {"gpt2",
     R"("n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_inner": 96, "activation_function": "relu", "tie_word_embeddings": false)"},
    {"gpt_oss",
     R"("num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 8, "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "truncate": false})"},
    {"gpt_oss",
     R"("num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 8, "attention_bias": false, "layer_types":
        ["full_attention", "sliding_attention", "full_attention", "full_attention"], "rope_scaling": {"rope_type": "linear", "factor": 2.0})"},
};

Model small_model(const Case& test_case) {
  const std::string_view sizes =
      R"("hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4,
      "head_dim": 16, "vocab_size": 40, "max_position_embeddings": 256)";
  // The case takes precedence.
  const Value common = parse_json(fmt::format("{{{}}}", sizes), "sizes");
  const Value own = parse_json(fmt::format("{{{}}}", test_case.keys), std::string(test_case.keys));
  Attributes keys;
  if (test_case.model_type != "gpt2") keys = *common.get_if<Attributes>();
  for (const auto& [key, value] : *own.get_if<Attributes>()) keys.set(key, value);
  const Family& family = *find_family(test_case.model_type);
  Attributes json{{"model_type", test_case.model_type}};
  if (family.nested.empty()) {
    for (const auto& [key, value] : keys) json.set(key, value);
  } else {
    json.set(std::string(family.nested), keys);
  }
  if (test_case.model_type == "gpt2") json.set("vocab_size", 40);
  Model model;
  parse_config(model, json, "config.json");
  for (const ExpectedTensor& tensor : family.tensors.list_all(make_config_view(model))) {
    model.add(make_tensor(tensor.name, tensor.shape, std::vector<float>(*element_count(tensor.shape), 0.5F)));
  }
  return model;
}

// Returns the plan of a model. Throws what run would throw.
DecoderPlan computation(const Model& model) {
  const Family& family = find_family_or_llama(model);
  if (!model.config) throw Error(ErrorKind::unsupported, "no configuration", {});
  std::vector<std::string> reasons = list_ignored_effects(model);
  for (std::string& fault : check_consistency(model)) reasons.push_back(std::move(fault));
  for (const std::string_view name : find_unknown_weights(model)) reasons.emplace_back(name);
  if (!reasons.empty()) throw Error(ErrorKind::unsupported, fmt::format("{}", fmt::join(reasons, "; ")), {});
  return family.plan(make_config_view(model));
}

// Frequencies that a format holds as other numbers agree to the last bits.
bool are_close(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) <= 1e-6F * std::abs(y); });
}

bool is_same(DecoderPlan a, const DecoderPlan& b) {
  if (a.ropes.size() != b.ropes.size()) return false;
  for (std::size_t i = 0; i < a.ropes.size(); ++i) {
    if (!are_close(a.ropes[i].frequencies, b.ropes[i].frequencies) ||
        !are_close(a.ropes[i].long_frequencies, b.ropes[i].long_frequencies))
      return false;
    a.ropes[i].frequencies = b.ropes[i].frequencies;
    a.ropes[i].long_frequencies = b.ropes[i].long_frequencies;
  }
  // gpt-oss's experts are stored in several ways.
  if (a.experts && b.experts) {
    a.experts->stored = b.experts->stored;
    a.experts->gate = b.experts->gate;
  }
  return a == b;
}

// Returns true if the losses name the keys that make this model another one, or the whole configuration.
bool is_told(const std::vector<std::string>& losses, const Case& test_case) {
  if (std::ranges::any_of(losses, [](const std::string& loss) { return loss.ends_with("hold the configuration"); }))
    return true;
  const Value keys = parse_json(fmt::format("{{{}}}", test_case.keys), "keys");
  for (const auto& [key, value] : *keys.get_if<Attributes>()) {
    if (std::ranges::any_of(losses,
                            [&name = key](const std::string& loss) { return loss.find(name) != std::string::npos; }))
      return true;
  }
  return false;
}

void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.model_type << " with " << test_case.keys; }

class Computation : public testing::TestWithParam<Case> {};

// Calls `use` with each copy of a value in which one item, number, text or flag is `other`.
void for_each_change(const Value& value, const Value& other, const std::function<void(const Value&)>& use) {
  use(other);
  if (const auto* object = value.get_if<Attributes>()) {
    for (const auto& [key, item] : *object) {
      for_each_change(item, other, [&, name = key](const Value& changed) {
        Attributes copy = *object;
        copy.set(name, changed);
        use(copy);
      });
    }
  } else if (const auto* array = value.get_if<Value::Array>()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      for_each_change((*array)[i], other, [&](const Value& changed) {
        Value::Array copy = *array;
        copy[i] = changed;
        use(copy);
      });
    }
  }
}

// Expects that verify() reports an error if load_weights() refuses the model as invalid, else a finding if Poise does
// not run it.
void expect_reported(const Model& model, const std::string& what) {
  try {
    (void)load_weights(model);
  } catch (const Error& error) {
    if (!model.config) return;  // of a family that is not known
    const std::vector<Finding> findings = check_headers(model, "model");
    const bool is_reported = error.kind() == ErrorKind::invalid_file
                                 ? std::ranges::count(findings, Severity::error, &Finding::severity) > 0
                                 : !findings.empty();
    EXPECT_TRUE(is_reported) << what << ": run refuses it: " << error.what();
  }
}

TEST_P(Computation, VerifyReportsWhatRunRefuses) {
  const Model model = small_model(GetParam());
  expect_reported(model, "the model");
  std::size_t tried = 0;
  for (const char* json :
       {"-1", "0", "1", "7", "0.5", "1e300", "99999999999", "\"x\"", "true", "null", "[]", "[-1]", "{}"}) {
    for_each_change(model.config_json, parse_json(json, "json"), [&](const Value& changed) {
      const auto* keys = changed.get_if<Attributes>();
      if (keys == nullptr || keys->find("model_type") == nullptr) return;
      Model other;
      try {
        parse_config(other, *keys, "config.json");
      } catch (const Error&) {
        return;  // it does not open
      }
      for (const Tensor& tensor : model.tensors()) other.add(tensor);
      expect_reported(other, to_json(changed));
      ++tried;
    });
  }
  EXPECT_GT(tried, 20U);
  // Each tensor is missing, has another shape, or is made of integers; and there is one too many.
  for (const Tensor& changed : model.tensors()) {
    for (int way = 0; way < 4; ++way) {
      Model other{ModelHeader(model.header())};
      for (const Tensor& tensor : model.tensors()) {
        if (tensor.name != changed.name) other.add(tensor);
      }
      if (way == 1) other.add(make_tensor(std::string(changed.name), {3}, {1, 2, 3}));
      if (way == 2) {
        const auto bytes = static_cast<std::size_t>(changed.elements() * 4);
        other.add(make_dense(std::string(changed.name), changed.shape, DType::i32,
                             make_memory_blob(std::vector<std::byte>(bytes), "integers")));
      }
      if (way == 3) {
        other.add(changed);
        other.add(make_tensor(std::string(changed.name) + ".more", {3}, {1, 2, 3}));
      }
      expect_reported(other, fmt::format("{}, change {}", std::string_view(changed.name), way));
    }
  }
  for (const std::vector<float>& divisors : {std::vector<float>(8, 0.0F), std::vector<float>(3, 1.0F)}) {
    Model other{ModelHeader(model.header())};
    for (const Tensor& tensor : model.tensors()) other.add(tensor);
    other.add(make_tensor("rope_freqs.weight", {divisors.size()}, divisors));
    expect_reported(other, "divisors");
  }
}

TEST_P(Computation, StaysThroughEachFormatOrIsReported) {
  const support::TemporaryDirectory directory;
  const Model model = small_model(GetParam());
  const DecoderPlan expected = computation(model);
  std::size_t written = 0;
  for (const Format* format : list_all_formats()) {
    if (format->prepare == nullptr) continue;
    SCOPED_TRACE(fmt::format("{} with {} through {}", GetParam().model_type, GetParam().keys, format->info.name));
    const std::filesystem::path path = directory / fmt::format("{}{}", format->info.name, format->info.extension);
    std::vector<std::string> losses;
    try {
      const Plan planned = plan(model, format->info.name);
      losses = planned.losses;
      write(planned, path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.message();
      continue;
    }
    ++written;
    const Model reread = open(path);
    // ALT refuses a model that would become another one.
    const bool may_differ = !format->info.name.starts_with("alt") && is_told(losses, GetParam());
    try {
      EXPECT_TRUE(is_same(computation(reread), expected) || may_differ) << fmt::format("{}", fmt::join(losses, "\n"));
    } catch (const Error& error) {
      EXPECT_TRUE(may_differ) << error.message() << fmt::format("\n{}", fmt::join(losses, "\n"));
    }
    // And once more, into a file that has the configuration as JSON.
    const std::filesystem::path last = directory / fmt::format("{} again.zt", format->info.name);
    convert(path, last, {.write = {.overwrite = true}});
    try {
      EXPECT_TRUE(is_same(computation(open(last)), computation(reread))) << "through zt";
    } catch (const Error& error) {
      EXPECT_TRUE(is_told(losses, GetParam())) << error.message();
    }
  }
  EXPECT_GE(written, 4U) << "zt, zt1, safetensors, a directory";
}

INSTANTIATE_TEST_SUITE_P(Families, Computation, testing::ValuesIn(kCases), [](const auto& tested) {
  return fmt::format("{}_{}", tested.param.model_type, tested.index);
});

}  // namespace
}  // namespace poise
