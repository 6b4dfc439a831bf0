#include "formats/huggingface/locate_weights.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/names.hpp"

namespace poise::huggingface {
namespace {

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

std::string why_no_weights(const Container& directory) {
  const MemberNames names = directory.names();
  for (const OtherWeights& other : kOtherWeights) {
    const auto found =
        std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(other.ending); });
    if (found != names.end()) return fmt::format("; there is a {}{}", *found, other.advice);
  }
  return {};
}

// The only file of the format.
std::optional<std::string> only_file(const Container& directory, const Format& format) {
  std::vector<std::string> found;
  for (std::string& name : directory.names()) {
    if (name.ends_with(format.info.extension)) found.push_back(std::move(name));
  }
  return found.size() == 1 && found[0].find("-of-") == std::string::npos ? std::optional(found[0]) : std::nullopt;
}

}  // namespace

std::vector<std::string> find_folders(const MemberNames& names) {
  const std::unordered_set<std::string_view> all(names.begin(), names.end());
  const auto has_weights = [&](const std::string& folder) {
    return std::ranges::any_of(all_formats(), [&](const Format* format) {
      const auto has = [&](std::string_view name) { return all.contains(folder + std::string(name)); };
      return format->weight_files &&
             (has(format->weight_files->index) || std::ranges::any_of(format->weight_files->names, has));
    });
  };
  std::vector<std::string> folders;
  for (const std::string& name : names) {
    const std::string folder = name.substr(0, name.rfind('/') + 1);
    if (name.substr(folder.size()) == kConfig && has_weights(folder))
      folders.push_back(folder.empty() ? folder : folder.substr(0, folder.size() - 1));
  }
  std::ranges::stable_sort(
      folders, {}, [](const std::string& folder) { return folder.empty() ? 0 : 1 + std::ranges::count(folder, '/'); });
  return folders;
}

std::unique_ptr<const Container> open_files(const Input& input, IoMode io, std::vector<Finding>* warnings) {
  const ContainerKind kind = container_of(input).value_or(ContainerKind::directory);
  auto files = open_container(kind, input.path, input.source, io);
  if (kind == ContainerKind::directory) return files;
  const std::vector<std::string> folders = find_folders(files->names());
  if (folders.empty()) return files;
  if (warnings != nullptr && folders.size() > 1) {
    constexpr std::size_t kMostBytes = 200;  // of a name
    std::vector<std::string> others;
    for (const std::string& folder : std::span(folders).subspan(1)) others.push_back(shortened(folder, kMostBytes));
    warnings->push_back(
        {Severity::warning,
         fmt::format("several folders of this archive have models: {} is opened, not {}",
                     folders[0].empty() ? "the outermost" : shortened(folders[0], kMostBytes), listed(others)),
         input.path.string(), std::nullopt});
  }
  return folders[0].empty() ? std::move(files) : files->folder(folders[0]);
}

std::optional<LocatedWeights> find_weights(const Container& directory) {
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    const WeightFiles& files = *format->weight_files;
    if (directory.has(files.names[0])) return LocatedWeights{format, std::string(files.names[0]), false};
    if (directory.has(files.index)) return LocatedWeights{format, std::string(files.index), true};
  }
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    for (const std::string_view name : format->weight_files->names) {
      if (directory.has(name)) return LocatedWeights{format, std::string(name), false};
    }
    if (!format->weight_files->any_name) continue;
    if (auto name = only_file(directory, *format)) return LocatedWeights{format, *std::move(name), false};
  }
  return std::nullopt;
}

std::optional<std::string> find_adapter(const Container& directory) {
  if (!directory.has(kAdapter)) return std::nullopt;
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    for (const std::string_view name : format->weight_files->names) {
      if (name.starts_with("adapter_model.") && directory.has(name)) return std::string(name);
    }
  }
  return std::nullopt;
}

LocatedWeights require_weights(const Container& directory) {
  if (auto found = find_weights(directory)) return *std::move(found);
  std::vector<std::string> missing;
  if (!directory.has(kConfig)) missing.emplace_back(kConfig);
  missing.push_back(fmt::format("{} (or {})", kSingle, kIndex));
  throw Error(ErrorKind::invalid_file,
              fmt::format("this directory is not a Hugging Face model; missing: {}{}", fmt::join(missing, ", "),
                          why_no_weights(directory)),
              directory.path().string());
}

}  // namespace poise::huggingface
