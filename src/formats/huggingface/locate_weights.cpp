#include "formats/huggingface/locate_weights.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/directory.hpp"
#include "formats/huggingface/names.hpp"
#include "io/directory.hpp"

namespace poise::huggingface {
namespace {

namespace fs = std::filesystem;

// What is there instead.
struct OtherWeights {
  std::string_view ending;
  std::string_view advice;
};
constexpr std::array kOtherWeights = std::to_array<OtherWeights>({
    {".safetensors", ": shards need their index, model.safetensors.index.json, next to them"},
    {".bin",
     ": shards need their index, pytorch_model.bin.index.json, next to them; other files are opened by themselves"},
    {".gguf", ", which is opened by itself"},
    {".pt", ", which is opened by itself"},
    {".pth", ", which is opened by itself"},
    {".h5", ", which Poise does not read: save the model from PyTorch with safe_serialization=True"},
    {".msgpack",
     ", which is opened by itself, with Flax's names and layouts: a directory that runs has PyTorch's; in Python, load "
     "it with from_flax=True and save it"},
});

std::string why_no_weights(const fs::path& directory) {
  const std::vector<DirectoryEntry> entries = list_directory(directory);
  for (const OtherWeights& other : kOtherWeights) {
    const auto found =
        std::ranges::find_if(entries, [&](const DirectoryEntry& entry) { return entry.name.ends_with(other.ending); });
    if (found != entries.end()) return fmt::format("; there is a {}{}", found->name, other.advice);
  }
  return {};
}

// The only file of the format.
std::optional<std::string> only_file(const fs::path& directory, const Format& format) {
  std::vector<std::string> found;
  for (DirectoryEntry& entry : list_directory(directory)) {
    if (entry.name.ends_with(format.info.extension)) found.push_back(std::move(entry.name));
  }
  return found.size() == 1 && found[0].find("-of-") == std::string::npos ? std::optional(found[0]) : std::nullopt;
}

}  // namespace

std::optional<LocatedWeights> find_weights(const fs::path& directory) {
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    const WeightFiles& files = *format->weight_files;
    if (is_there(directory / files.names[0])) return LocatedWeights{format, std::string(files.names[0]), false};
    if (is_there(directory / files.index)) return LocatedWeights{format, std::string(files.index), true};
  }
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    for (const std::string_view name : format->weight_files->names) {
      if (is_there(directory / name)) return LocatedWeights{format, std::string(name), false};
    }
    if (!format->weight_files->any_name) continue;
    if (auto name = only_file(directory, *format)) return LocatedWeights{format, *std::move(name), false};
  }
  return std::nullopt;
}

std::optional<std::string> find_adapter(const fs::path& directory) {
  if (!is_there(directory / kAdapter)) return std::nullopt;
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    for (const std::string_view name : format->weight_files->names) {
      if (name.starts_with("adapter_model.") && is_there(directory / name)) return std::string(name);
    }
  }
  return std::nullopt;
}

LocatedWeights require_weights(const fs::path& directory) {
  if (auto found = find_weights(directory)) return *std::move(found);
  std::vector<std::string> missing;
  if (!is_there(directory / kConfig)) missing.emplace_back(kConfig);
  missing.push_back(fmt::format("{} (or {})", kSingle, kIndex));
  throw Error(ErrorKind::invalid_file,
              fmt::format("this directory is not a Hugging Face model; missing: {}{}", fmt::join(missing, ", "),
                          why_no_weights(directory)),
              directory.string());
}

}  // namespace poise::huggingface
