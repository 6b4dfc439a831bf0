#include "formats/huggingface/list_keys.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/directory.hpp"
#include "formats/huggingface/names.hpp"
#include "formats/huggingface/python_json.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "formats/type_name.hpp"
#include "io/directory.hpp"
#include "io/source_text.hpp"

namespace poise::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kJsonFiles = {kConfig, kGeneration, "tokenizer_config.json", kAdapter};
constexpr std::uint64_t kMaxJsonBytes = std::uint64_t{256} << 20;

void add_json(const fs::path& directory, std::string_view name, std::vector<MetadataKey>& keys) {
  if (!is_there(directory / name)) return;
  const SourcePtr source = Source::open(directory / name);
  if (source->size() > kMaxJsonBytes)
    throw Error(ErrorKind::unsupported, fmt::format("{} bytes are too many for this file", source->size()),
                source->name());
  std::vector<std::string> numbers;
  const Value value = parse_json(without_non_finite(read_text(*source, source->size()), numbers), source->name());
  const auto* map = value.get_if<Attributes>();
  if (map == nullptr) return;
  for (const auto& [key, item] : *map) keys.push_back({fmt::format("{}: {}", name, key), type_name(item), item});
}

// The first file of weights; empty if none has the usual name.
fs::path first_weights(const fs::path& directory) {
  if (is_there(directory / kSingle)) return directory / kSingle;
  for (const DirectoryEntry& entry : list_directory(directory)) {
    if (entry.name.ends_with(".safetensors") && is_there(directory / entry.name)) return directory / entry.name;
  }
  return {};
}

}  // namespace

std::vector<MetadataKey> list_keys(const Input& input) {
  std::vector<MetadataKey> keys;
  for (const std::string_view name : kJsonFiles) add_json(input.path, name, keys);
  if (const fs::path weights = first_weights(input.path); !weights.empty()) {
    for (MetadataKey& key : safetensors_keys(Source::open(weights))) {
      key.key = fmt::format("{}: {}", weights.filename().string(), key.key);
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

}  // namespace poise::huggingface
