#include "ops/option_words.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bytes/ascii.hpp"
#include "bytes/number_text.hpp"
#include "codec/block_type.hpp"
#include "codec/limits.hpp"
#include "ops/block_recipe.hpp"

namespace poise {
namespace {

constexpr int kUsualZstdLevel = 3;  // the zstd tool's default

std::vector<std::string_view> written_block_types() {
  std::vector<std::string_view> names;
  for (const BlockType& type : block_types()) {
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
  options.quantize = stored_type_from_name(name);
  return options.quantize && options.quantize->quantized();
}

std::string quantization_choices() {
  return fmt::format("{} or a recipe ({})", code_type_choices(), fmt::join(block_recipe_names(), ", "));
}

std::string code_type_choices() {
  return fmt::format("qint8 or qint4, alone or with :range or :mse, group8 or group4, a block type ({})",
                     fmt::join(written_block_types(), ", "));
}

std::optional<StoredType> kept_type_from(std::string_view text) { return stored_type_from_name(to_lower_ascii(text)); }

std::string kept_type_choices() {
  return fmt::format("f32, f16, bf16, qint8 or qint4 (:range, :mse), group8 or group4 (:SIZE), or a block type ({})",
                     fmt::join(written_block_types(), ", "));
}

std::string group_size_choices(const Groups& groups) {
  return fmt::format("a multiple of {} up to {}", 32 / groups.bits, kMaxGroupSize);
}

std::optional<int> zstd_level_from(std::string_view given) {
  constexpr std::string_view kName = "zstd:";
  const std::string small = to_lower_ascii(given);
  const std::string_view text = small;
  if (text == "zstd") return kUsualZstdLevel;
  return text.starts_with(kName) ? number_from<int>(text.substr(kName.size())) : std::nullopt;
}

}  // namespace poise
