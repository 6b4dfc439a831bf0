// Reads AutoRound's directories. The key packing_format, or `backend` in older directories, names the form of the
// parts. Most forms are those of other projects:
//
//   auto_round:auto_gptq        GPTQ, whose zero points are stored minus 1; the default, and `backend` "auto"
//   auto_round,                 GPTQ, whose zero points are stored as they are
//   auto_round:gptqmodel
//   auto_round:auto_awq         AWQ
//   auto_round:llm_compressor   the parts of compressed-tensors: MXFP4, MXFP8 and NVFP4
//   auto_round:fp8_static       `weight` f8 and `weight_scale`, one number or one for each row
//
// The key extra_config has other settings for some modules, by names or by regular expressions. Poise does not match
// the expressions. If the parts are those of GPTQ, their shapes show which settings apply (`dynamic` in gptq.cpp).
//
// Sources: export_to_autoround of auto-round, and the INC configuration of vLLM.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "schemes/make_tensors.hpp"

namespace poise::schemes::auto_round {
namespace {

constexpr std::array<std::string_view, 3> kCodeParts = {".scales", ".qzeros", ".g_idx"};
constexpr std::array<std::string_view, 2> kFloatParts = {".weight", ".weight_zp"};
constexpr std::array<DType, 2> kFloatCodes = {DType::f8_e4m3, DType::f8_e5m2};
constexpr std::string_view kDefaultPacking = "auto_round:auto_gptq";

enum class Storage : std::uint8_t { gptq, gptq_v2, awq, parts };

// Returns the form in which the directory stores codes. Storage::parts stands for the forms without codes in words.
// Throws unsupported (without path) for an unknown form.
Storage find_storage(const QuantizationConfig& config) {
  std::string_view key = "packing_format";
  std::optional<std::string> name = config.read_text(key);
  if (!name) {
    key = "backend";
    name = config.read_text(key);
    if (name && *name == "auto") name.reset();
  }
  std::string packing = name.value_or(std::string(kDefaultPacking));
  std::ranges::replace(packing, '-', '_');
  const auto has = [&](std::string_view part) { return packing.find(part) != std::string::npos; };
  if (has("awq")) return Storage::awq;
  if (has("gptqmodel")) return Storage::gptq_v2;
  if (has("gptq")) return Storage::gptq;
  if (has("llm_compressor") || has("fp8")) return Storage::parts;
  if (packing == "auto_round" || has("exllama") || has("triton")) return Storage::gptq_v2;
  throw Error(ErrorKind::unsupported, fmt::format("quantization_config: {} is {}, only storage of gptq, awq, "
                                                  "llm_compressor and fp8_static is supported",
                                                  key, *name));
}

void require_known_variant(const QuantizationConfig& config) { (void)find_storage(config); }

bool is_expression(std::string_view name) { return name.find_first_of("*+?^$()[]{}|\\") != std::string_view::npos; }

// Converts the settings of a matrix to a configuration that the schemes of GPTQ and AWQ read. If extra_config has
// no settings under the matrix's name, those under regular expressions become `dynamic`.
Attributes make_settings(const std::string& matrix, const QuantizationConfig& config, Storage storage) {
  Attributes settings = {{"bits", Value()},
                         {"group_size", Value()},
                         {"sym", Value()},
                         {"packing_format", storage == Storage::gptq ? "auto_round:auto_gptq" : "auto_round"}};
  const auto copy_keys = [](const Attributes& from, Attributes& to) {
    for (const std::string_view key : {"bits", "group_size", "sym"}) {
      if (const Value* value = from.find(key)) to.set(std::string(key), *value);
    }
  };
  copy_keys(config.keys(), settings);
  if (storage == Storage::awq) settings.set("zero_point", !config.read_boolean("sym").value_or(false));
  const Attributes* extra = config.find_object("extra_config");
  if (extra == nullptr) return settings;
  if (const auto* own = extra->get_if<Attributes>(matrix)) {
    copy_keys(*own, settings);
    return settings;
  }
  Attributes dynamic;
  for (const auto& [name, value] : *extra) {
    const auto* own = value.get_if<Attributes>();
    if (own == nullptr || !is_expression(name)) continue;
    Attributes keys;
    copy_keys(*own, keys);
    const auto* bits = keys.get_if<std::uint64_t>("bits");
    if (bits == nullptr || *bits <= 8) dynamic.set(name, std::move(keys));  // with more bits, modules are not quantized
  }
  if (!dynamic.empty()) settings.set("dynamic", std::move(dynamic));
  return settings;
}

Tensor fold_codes(const MatrixParts& matrix, const QuantizationConfig& config) {
  const Storage storage = find_storage(config);
  if (storage == Storage::parts) matrix.fail("it has codes in words, but packing_format names a storage without them");
  const Attributes settings = make_settings(matrix.name(), config, storage);
  const QuantizationScheme& scheme = storage == Storage::awq ? awq::kAwq : gptq::kGptq;
  const QuantizationConfig described(settings);
  scheme.require_known_variant(described);
  return scheme.fold(matrix, described);
}

// Returns the warnings of GPTQ or AWQ. Their list_warnings takes one configuration, so each call gets the matrices that
// have the same settings.
std::vector<std::string> list_warnings(const Model& model, const QuantizationConfig& config,
                                       std::span<const std::string> matrices) {
  const Storage storage = find_storage(config);
  const QuantizationScheme& scheme = storage == Storage::awq ? awq::kAwq : gptq::kGptq;
  std::map<std::string, std::pair<Attributes, std::vector<std::string>>> groups;  // by the settings as JSON
  for (const std::string& matrix : matrices) {
    Attributes settings = make_settings(matrix, config, storage);
    auto& group = groups[to_json(Value(settings))];
    group.first = std::move(settings);
    group.second.push_back(matrix);
  }
  std::vector<std::string> warnings;
  for (const auto& [text, group] : groups) {
    std::ranges::move(scheme.list_warnings(model, QuantizationConfig(group.first), group.second),
                      std::back_inserter(warnings));
  }
  return warnings;
}

// Returns true for floats of 8 bits. Numbers of 4 bits also have a weight_scale, but are in weight_packed.
bool holds_floats(const MatrixParts& matrix) { return matrix.find(".weight_packed") == nullptr; }

Tensor fold_floats(const MatrixParts& matrix, const QuantizationConfig&) {
  if (matrix.find(".weight_zp") != nullptr) matrix.fail("floating-point numbers have no zero point");
  return make_scaled_f8(matrix, ".weight_scale");
}

}  // namespace

const QuantizationScheme kFloats = {
    .title = "AutoRound fp8",
    .method = kAutoRound,
    .require_known_variant = require_known_variant,
    .marker = ".weight_scale",
    .parts = kFloatParts,
    .left_out = kNotOfWeights,
    .holds = holds_floats,
    .code_types = kFloatCodes,
    .fold = fold_floats,
};

const QuantizationScheme kCodes = {
    .title = "AutoRound",
    .method = kAutoRound,
    .require_known_variant = require_known_variant,
    .marker = ".qweight",
    .parts = kCodeParts,
    .list_warnings = list_warnings,
    .fold = fold_codes,
};

}  // namespace poise::schemes::auto_round
