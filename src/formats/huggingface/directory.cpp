#include "formats/huggingface/directory.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/families.hpp"
#include "formats/faulty_model.hpp"
#include "formats/huggingface/adapter.hpp"
#include "io/directory.hpp"
#include "io/source_range.hpp"
#include "model/fault_lists.hpp"
#include "model/limits.hpp"
#include "schemes/quantization_files.hpp"
#include "schemes/scheme.hpp"
#include "syntax/json.hpp"
#include "syntax/value_budget.hpp"
#include "tokenizer/files/files.hpp"

namespace poise::huggingface {
namespace {

constexpr std::uint64_t kMaxJsonFileBytes = std::uint64_t{256} << 20;  // config.json, an index, ...
constexpr std::uint64_t kFrontMatterBytes = 1 << 20;                   // first bytes of the README, with front matter

}  // namespace

SourcePtr DirectoryReader::open(std::string_view name) {
  SourcePtr source = container_.open(name);
  opened_.push_back(source);
  record_file(name, *source);
  return source;
}

// Records a file of the model's origin. All members of an archive are one file.
void DirectoryReader::record_file(std::string_view name, const Source& source) {
  std::filesystem::path file = container_.locate_file(name);
  if (files_.empty() || files_.back() != file) files_.push_back(std::move(file));
  size_ += source.size();
}

std::vector<DirectoryFile> DirectoryReader::read_other_files(std::vector<Finding>& warnings) {
  std::vector<DirectoryFile> files;
  const auto add = [&](std::string_view name) {
    if (!container_.has_file(name)) return;
    const std::string path = container_.path(name).string();
    const auto found = std::ranges::find(opened_, path, [](const SourcePtr& source) { return source->name(); });
    try {
      files.push_back({std::string(name), found != opened_.end() ? *found : open(name)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      warnings.push_back({Severity::warning, fmt::format("a conversion does not copy this file: {}", error.message()),
                          path, error.offset()});
    }
  };
  std::ranges::for_each(kTokenizerFiles, add);
  std::ranges::for_each(find_additional_templates(container_), add);
  add(kGeneration);
  if (readme_) files.push_back({std::string(kReadme), readme_});
  return files;
}

std::string DirectoryReader::read_member_text(std::string_view name) {
  const SourcePtr source = open(name);
  if (source->size() > kMaxJsonFileBytes)
    throw Error(ErrorKind::invalid_file,
                fmt::format("the file has {} bytes, at most {} are read", source->size(), kMaxJsonFileBytes),
                source->name());
  return read_text(*source, source->size());
}

std::string DirectoryReader::read_readme() {
  if (!container_.has_file(kReadme)) return {};
  if (!readme_) {
    readme_ = container_.open(kReadme);
    record_file(kReadme, *readme_);
  }
  return read_text(*readme_, std::min(readme_->size(), kFrontMatterBytes));
}

Attributes DirectoryReader::read_json_object(std::string_view name, std::vector<Finding>& warnings) {
  const std::string source = container_.path(name).string();
  UnheldNumbers numbers;
  Value value = parse_json(read_member_text(name), source, numbers);
  if (!numbers.non_finite.empty())
    warn(warnings, fmt::format("{} is not JSON: it is replaced with null", fmt::join(numbers.non_finite, ", ")),
         source);
  for (const std::string& integer : numbers.wide_integers)
    warn(warnings,
         fmt::format("the integer {} has more than 64 bits: it is replaced with {}", shorten_integer(integer),
                     to_json(parse_json(integer, source))),
         source);
  if (value.get_if<Attributes>() == nullptr) throw Error(ErrorKind::invalid_file, "JSON: expected an object", source);
  return std::move(value).take<Attributes>();
}

namespace {

// Holds advice about a file that a directory has instead of the usual weights, and the end of its name.
struct OtherWeights {
  std::string_view ending;
  std::string_view advice;
};
constexpr std::array kOtherWeights = std::to_array<OtherWeights>({
    {".safetensors", ": shards need their index, model.safetensors.index.json, next to them"},
    {".bin",
     ": shards need their index, pytorch_model.bin.index.json, next to them; open other files by their own path"},
    {".gguf", "; open it by its own path"},
    {".pt", "; open it by its own path"},
    {".pth", "; open it by its own path"},
    {".h5", ", which Poise does not read: save the model from PyTorch with safe_serialization=True"},
    {".msgpack",
     "; open it by its own path, with Flax's names. To run the model, load it in Python with from_flax=True and save "
     "it"},
});

std::string explain_missing_weights(const Container& directory) {
  const MemberNames names = directory.list_names();
  for (const OtherWeights& other : kOtherWeights) {
    const auto found =
        std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(other.ending); });
    if (found != names.end()) return fmt::format("; there is a {}{}", *found, other.advice);
  }
  return {};
}

// Returns the only file of the format; std::nullopt if there are none or several, or if it is a shard.
std::optional<std::string> find_only_file(const Container& directory, const Format& format) {
  std::vector<std::string> found;
  for (std::string& name : directory.list_names()) {
    if (name.ends_with(format.info.extension)) found.push_back(std::move(name));
  }
  return found.size() == 1 && found[0].find("-of-") == std::string::npos ? std::optional(found[0]) : std::nullopt;
}

}  // namespace

std::vector<std::string> find_model_folders(const MemberNames& names) {
  const std::unordered_set<std::string_view> all(names.begin(), names.end());
  const auto has_weights = [&](const std::string& folder) {
    return std::ranges::any_of(list_all_formats(), [&](const Format* format) {
      const auto has = [&](std::string_view name) { return all.contains(folder + std::string(name)); };
      return format->weight_files && ((!format->weight_files->index.empty() && has(format->weight_files->index)) ||
                                      std::ranges::any_of(format->weight_files->names, has));
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

std::unique_ptr<const Container> open_model_folder(const Input& input, IoMode io, std::vector<Finding>* warnings) {
  const ContainerKind kind = find_container_kind(input).value_or(ContainerKind::directory);
  auto files = open_container(kind, input.path, input.source, io);
  if (kind == ContainerKind::directory) return files;
  const std::vector<std::string> folders = find_model_folders(files->list_names());
  if (folders.empty()) return files;
  if (warnings != nullptr && folders.size() > 1) {
    constexpr std::size_t kMostBytes = 200;  // the longest name in a message
    std::vector<std::string> others;
    for (const std::string& folder : std::span(folders).subspan(1)) others.push_back(shorten(folder, kMostBytes));
    warn(*warnings,
         fmt::format("several folders of this archive have models: {} is opened, not {}",
                     folders[0].empty() ? "the outermost" : shorten(folders[0], kMostBytes), list_names(others)),
         input.path);
  }
  return folders[0].empty() ? std::move(files) : files->open_folder(folders[0]);
}

std::optional<LocatedWeights> find_weights(const Container& directory) {
  for (const Format* format : list_all_formats()) {
    if (!format->weight_files) continue;
    const WeightFiles& files = *format->weight_files;
    if (directory.has(files.names[0])) return LocatedWeights{format, std::string(files.names[0]), false};
    if (!files.index.empty() && directory.has(files.index))
      return LocatedWeights{format, std::string(files.index), true};
  }
  for (const Format* format : list_all_formats()) {
    if (!format->weight_files) continue;
    for (const std::string_view name : format->weight_files->names) {
      if (directory.has(name)) return LocatedWeights{format, std::string(name), false};
    }
    if (!format->weight_files->has_any_name) continue;
    if (auto name = find_only_file(directory, *format)) return LocatedWeights{format, *std::move(name), false};
  }
  return std::nullopt;
}

std::optional<std::string> find_adapter(const Container& directory) {
  if (!directory.has(kAdapter)) return std::nullopt;
  for (const Format* format : list_all_formats()) {
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
                          explain_missing_weights(directory)),
              directory.path().string());
}

namespace {

namespace fs = std::filesystem;

// Maps each shard to the names of its tensors in the index.
using ShardMap = std::map<std::string, std::set<std::string>>;

ShardMap read_index(DirectoryReader& directory, const std::string& index, std::vector<Finding>& warnings) {
  const std::string path = directory.path(index).string();
  const Attributes root = directory.read_json_object(index, warnings);
  const auto* map = root.get_if<Attributes>("weight_map");
  if (map == nullptr) throw Error(ErrorKind::invalid_file, "index: weight_map: expected an object", path);
  if (map->size() > kMaxTensors)
    throw Error(ErrorKind::invalid_file, fmt::format("index: weight_map: more than {} tensors", kMaxTensors), path);
  ShardMap shards;
  for (const auto& [tensor, shard] : *map) {
    const auto* name = shard.get_if<std::string>();
    if (name == nullptr)
      throw Error(ErrorKind::invalid_file, fmt::format("index: weight_map: {}: expected a file name", tensor), path);
    if (!is_plain_file_name(*name)) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("index: weight_map: {}: \"{}\" is not a plain file name inside the directory", tensor, *name),
          path);
    }
    shards[*name].insert(tensor);
  }
  return shards;
}

void require_shards(const DirectoryReader& directory, const std::string& index, const ShardMap& shards) {
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::string> absent;
  std::size_t more = 0;
  for (const auto& [shard, tensors] : shards) {
    if (directory.has(shard)) continue;
    if (absent.size() < kMostNamed) {
      absent.push_back(fmt::format("{} ({})", shard, format_count(tensors.size(), "tensor")));
    } else {
      ++more;
    }
  }
  if (absent.empty()) return;
  if (more > 0) absent.push_back(fmt::format("and {} more", more));
  throw Error(ErrorKind::not_found, fmt::format("the index names files that are missing: {}", fmt::join(absent, ", ")),
              directory.path(index).string());
}

class TensorCollector {
 public:
  // The collector leaves out tensors that the model's family computes.
  TensorCollector(Model& model, const WeightFiles& files)
      : model_(model), files_read_(files), family_(model.config ? &find_family_or_llama(model) : nullptr) {}

  // Adds the tensors and the metadata of a file. Calls `look_at` with the name of each tensor, including those that are
  // left out.
  void add_file(DirectoryReader& directory, const std::string& file,
                FunctionRef<void(const std::string& name)> look_at) {
    const SourcePtr source = directory.open(file);
    const std::string path = directory.path(file).string();
    const auto add_tensor = [&](Tensor tensor) {
      look_at(tensor.name);
      if (const std::string why = explain_left_out(tensor.name); why.empty()) {
        model_.add(std::move(tensor));
      } else {
        warn(model_.warnings, fmt::format("tensor {} is left out: {}", tensor.name, why), path);
      }
    };
    const Attributes metadata = files_read_.read(source, add_tensor, model_.warnings);
    for (const auto& [key, value] : metadata) {
      if (!keys_.insert(key).second) continue;
      if (!budget_.charge_value() || !budget_.charge_key(keys_.size()))
        throw Error(ErrorKind::invalid_file, "the shards hold too much metadata together", path);
      metadata_.emplace_back(key, value);
    }
    files_.push_back(directory.container().locate_file(file));
  }

  // Moves the shards' metadata into the model. Returns the files.
  std::vector<fs::path> finish() {
    model_.attributes = Attributes::from_unique(std::move(metadata_));
    return std::move(files_);
  }

 private:
  // Returns why a tensor is left out; an empty text if it stays.
  std::string explain_left_out(std::string_view tensor) const {
    if (family_ == nullptr) return {};
    const ComputedTensor* computed = find_computed_tensor(*family_, tensor);
    return computed == nullptr ? std::string() : fmt::format("it is computed from {}", computed->from);
  }

  Model& model_;
  const WeightFiles& files_read_;
  const Family* family_;                     // null if the model has no configuration
  std::vector<Attributes::Entry> metadata_;  // if shards disagree about a key, the first one's value
  std::unordered_set<std::string> keys_;
  ValueBudget budget_{0};  // all shards together use this budget
  std::vector<fs::path> files_;
};

}  // namespace

std::vector<fs::path> read_tensors(Model& model, DirectoryReader& directory, const LocatedWeights& weights) {
  TensorCollector collector(model, weights.files());
  if (!weights.is_index) {
    collector.add_file(directory, weights.name, [](const std::string&) {});
    return collector.finish();
  }
  const ShardMap shards = read_index(directory, weights.name, model.warnings);
  require_shards(directory, weights.name, shards);
  const std::string path = directory.path(weights.name).string();
  std::vector<Finding> faults;
  const auto report = [&](const std::string& tensor, const std::string& problem) {
    add_fault(faults, {Severity::error, problem, path, std::nullopt, tensor});
  };
  MemberNames names;
  for (const auto& [shard, promised] : shards) names.push_back(shard);
  directory.container().prefetch(names);
  for (const auto& [shard, promised] : shards) {
    std::set<std::string> found;
    collector.add_file(directory, shard, [&](const std::string& name) { found.insert(name); });
    for (const std::string& name : promised) {
      if (!found.contains(name)) report(name, fmt::format("{} lacks {}, which the index lists there", shard, name));
    }
    for (const std::string& name : found) {
      if (!promised.contains(name))
        report(name, fmt::format("{} holds {}, which the index does not list there", shard, name));
    }
  }
  std::vector<fs::path> files = collector.finish();
  if (faults.empty()) return files;
  model.origin = directory.origin();
  const std::string message = format_faults(faults);
  throw FaultyModel(message, path, std::move(faults), std::move(model));
}

namespace {

constexpr std::string_view kQuantizationConfig = "quantization_config";

std::optional<Attributes> read_quantization_config(const QuantizationFile& row, DirectoryReader& directory,
                                                   std::vector<Finding>& warnings) {
  const Attributes file = directory.read_json_object(row.name, warnings);
  try {
    return row.make_config(file);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), (directory.path() / row.name).string());
  }
}

}  // namespace

std::string_view read_quantization_file(Model& model, DirectoryReader& directory) {
  std::string_view taken;
  for (const QuantizationFile& row : list_quantization_files()) {
    if (!directory.has(row.name)) continue;
    const std::filesystem::path path = directory.path() / row.name;
    const auto counts = find_quantization(model.config_json);
    std::optional<Attributes> config;
    try {
      config = read_quantization_config(row, directory, model.warnings);
    } catch (const Error& error) {
      if (!counts) throw;
      warn(model.warnings, fmt::format("{} is not read: {}", row.name, error.message()), path);
    }
    if (!config) continue;
    if (!counts) {
      model.config_json.set(std::string(kQuantizationConfig), *std::move(config));
      taken = row.name;
      continue;
    }
    const std::vector<std::string> differing = find_differences(*counts->config, *config);
    const std::string_view counting = taken.empty() ? "config.json" : taken;
    if (!differing.empty())
      warn(model.warnings,
           fmt::format("{} and {} differ: {}; {} is used", counting, row.name, fmt::join(differing, ", "), counting),
           path);
  }
  return taken;
}

}  // namespace poise::huggingface
