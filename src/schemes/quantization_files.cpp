#include "schemes/quantization_files.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/ascii.hpp"
#include "bytes/short_text.hpp"

namespace poise {
namespace {

// {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", ...}}
std::optional<Attributes> from_modelopt(const Attributes& file) {
  const Value* inner = file.find("quantization");
  const auto* keys = inner == nullptr ? &file : inner->get_if<Attributes>();
  if (keys == nullptr) throw Error(ErrorKind::invalid_file, "quantization: expected an object");
  const Value* algorithm = keys->find("quant_algo");
  if (algorithm == nullptr || *algorithm == Value()) return std::nullopt;  // the cache of keys and values alone
  if (algorithm->get_if<std::string>() == nullptr)
    throw Error(ErrorKind::invalid_file, "quantization: quant_algo: expected text");
  Attributes config = *keys;
  config.set("quant_method", "modelopt");
  return config;
}

// {"bits": 4, "group_size": 128, "desc_act": false, ...}, or AWQ's {"w_bit": 4, "q_group_size": 128, "version": "GEMM"}
std::optional<Attributes> from_older_key(const Attributes& file) {
  Attributes config = file;
  const Value* method = file.find("quant_method");
  if (method == nullptr || *method == Value()) {
    config.set("quant_method", file.find("w_bit") != nullptr || file.find("q_group_size") != nullptr ? "awq" : "gptq");
  } else if (method->get_if<std::string>() == nullptr) {
    throw Error(ErrorKind::invalid_file, "quant_method: expected text");
  }
  return config;
}

constexpr std::array kFiles = std::to_array<QuantizationFile>({{"hf_quant_config.json", from_modelopt},
                                                               {"quantize_config.json", from_older_key},
                                                               {"quant_config.json", from_older_key}});

struct DecidingKey {
  std::string_view name;
  std::string_view older = {};
};
constexpr std::array kDeciding = std::to_array<DecidingKey>({{"quant_method"},
                                                             {"quant_algo"},
                                                             {"bits", "w_bit"},
                                                             {"group_size", "q_group_size"},
                                                             {"checkpoint_format"},
                                                             {"sym"},
                                                             {"zero_point"},
                                                             {"version"}});

const Value* value_of(const Attributes& config, const DecidingKey& key) {
  const Value* value = config.find(key.name);
  if (value == nullptr && !key.older.empty()) value = config.find(key.older);
  return value == nullptr || *value == Value() ? nullptr : value;
}

// Long values are cut; letters are lower, as "GEMM" and "gemm" are the same.
std::string lower_text(const Value& value) {
  constexpr std::size_t kMost = 60;
  const auto* text = value.get_if<std::string>();
  return shortened(to_lower_ascii(text != nullptr ? *text : to_json(value)), kMost);
}

}  // namespace

std::span<const QuantizationFile> quantization_files() { return kFiles; }

std::vector<std::string> differences(const Attributes& config, const Attributes& other) {
  std::vector<std::string> found;
  for (const DecidingKey& key : kDeciding) {
    const Value* one = value_of(config, key);
    const Value* two = value_of(other, key);
    if (one == nullptr || two == nullptr || lower_text(*one) == lower_text(*two)) continue;
    found.push_back(fmt::format("{} is {} and {}", key.name, lower_text(*one), lower_text(*two)));
  }
  return found;
}

}  // namespace poise
