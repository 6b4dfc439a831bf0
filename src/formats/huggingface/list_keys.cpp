#include "formats/huggingface/write.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/directory.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "formats/spellings.hpp"
#include "io/directory.hpp"
#include "io/source_range.hpp"
#include "syntax/json.hpp"

namespace poise::huggingface {
namespace {

constexpr std::array<std::string_view, 4> kJsonFiles = {kConfig, kGeneration, "tokenizer_config.json", kAdapter};
constexpr std::uint64_t kMaxJsonBytes = std::uint64_t{256} << 20;

void add_json_keys(const Container& directory, std::string_view name, std::vector<MetadataKey>& keys) {
  if (!directory.has(name)) return;
  const SourcePtr source = directory.open(name);
  if (source->size() > kMaxJsonBytes)
    throw Error(ErrorKind::unsupported,
                fmt::format("the file has {} bytes, at most {} are read", source->size(), kMaxJsonBytes),
                source->name());
  UnheldNumbers numbers;
  const Value value = parse_json(read_text(*source, source->size()), source->name(), numbers);
  const auto* map = value.get_if<Attributes>();
  if (map == nullptr) return;
  for (const auto& [key, item] : *map)
    keys.push_back({fmt::format("{}: {}", name, key), describe_value_type(item), item});
}

// Returns the usual file of weights, or the first safetensors file; empty if there is none.
std::string find_first_weights(const Container& directory) {
  if (directory.has(kSingle)) return std::string(kSingle);
  for (const std::string& name : directory.list_names()) {
    if (name.ends_with(".safetensors") && directory.has(name)) return name;
  }
  return {};
}

}  // namespace

std::vector<MetadataKey> list_keys(const Input& input) {
  std::vector<MetadataKey> keys;
  const auto files = open_model_folder(input, IoMode::map);
  for (const std::string_view name : kJsonFiles) add_json_keys(*files, name, keys);
  if (const std::string weights = find_first_weights(*files); !weights.empty()) {
    for (MetadataKey& key : list_safetensors_keys(files->open(weights))) {
      key.key = fmt::format("{}: {}", weights, key.key);
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

}  // namespace poise::huggingface
