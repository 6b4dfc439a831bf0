#include "ops/option_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "codec/block_type.hpp"
#include "ops/block_recipe.hpp"

namespace poise {
namespace {

constexpr std::string_view kByBudget = "auto";
constexpr int kUsualZstdLevel = 3;  // the zstd tool's default

std::vector<std::string_view> list_written_block_types() {
  std::vector<std::string_view> names;
  for (const BlockType& type : list_block_types()) {
    if (type.encode != nullptr) names.push_back(type.name);
  }
  return names;
}

}  // namespace

bool set_quantization(ConvertOptions& options, std::string_view text) {
  const std::string name = to_lower_ascii(text);  // llama-quantize writes its types in capitals
  if (is_block_recipe(name)) {
    options.recipe = name;
    return true;
  }
  if (name == kByBudget) {
    options.budget.emplace();
    return true;
  }
  options.quantize = stored_type_from_name(name);
  return options.quantize && options.quantize->quantized();
}

std::string format_quantization_choices() {
  return fmt::format("{}, a recipe ({}) or {}", format_code_types(), fmt::join(list_block_recipes(), ", "), kByBudget);
}

std::vector<std::string> list_quantization_names() {
  std::vector<std::string> names = {"qint8",       "qint8:range", "qint8:mse", "qint4",
                                    "qint4:range", "qint4:mse",   "group8",    "group4"};
  for (const std::string_view name : list_written_block_types()) names.emplace_back(name);
  for (const std::string_view name : list_block_recipes()) names.emplace_back(name);
  names.emplace_back(kByBudget);
  return names;
}

std::string format_code_types() {
  return fmt::format("qint8 or qint4, alone or with :range or :mse, group8 or group4, a block type ({})",
                     fmt::join(list_written_block_types(), ", "));
}

std::optional<DType> parse_cast_type(std::string_view text) {
  constexpr auto kNames = std::to_array<std::pair<std::string_view, DType>>({{"f32", DType::f32},
                                                                             {"fp32", DType::f32},
                                                                             {"float32", DType::f32},
                                                                             {"float", DType::f32},
                                                                             {"f16", DType::f16},
                                                                             {"fp16", DType::f16},
                                                                             {"float16", DType::f16},
                                                                             {"half", DType::f16},
                                                                             {"bf16", DType::bf16},
                                                                             {"bfloat16", DType::bf16}});
  const auto* const found = std::ranges::find(kNames, to_lower_ascii(text), &std::pair<std::string_view, DType>::first);
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

std::optional<StoredType> parse_kept_type(std::string_view text) {
  if (const auto dtype = parse_cast_type(text)) return StoredType{*dtype};
  return stored_type_from_name(to_lower_ascii(text));
}

std::string format_kept_types() {
  return fmt::format("f32, f16, bf16, qint8 or qint4 (:range, :mse), group8 or group4 (:SIZE), or a block type ({})",
                     fmt::join(list_written_block_types(), ", "));
}

std::string format_group_sizes(const Groups& groups) {
  return fmt::format("a multiple of {} up to {}", 32 / groups.bits, kMaxGroupSize);
}

std::optional<int> parse_zstd_level(std::string_view given) {
  constexpr std::string_view kName = "zstd:";
  const std::string small = to_lower_ascii(given);
  const std::string_view text = small;
  if (text == "zstd") return kUsualZstdLevel;
  return text.starts_with(kName) ? parse_number_text<int>(text.substr(kName.size())) : std::nullopt;
}

}  // namespace poise
