// The layout of a Hugging Face model directory (docs/formats/huggingface.md):
//
//   config.json                     hyperparameters; without it the tensors alone are read
//   generation_config.json          how to generate; kept as an attribute
//   model.safetensors               all tensors, or
//   model.safetensors.index.json    {"weight_map": {tensor: shard}}, and the shards next to it
//   pytorch_model.bin, ...          the same in other formats: Format::weight_files
//   tokenizer.model                 SentencePiece vocabulary, or
//   tokenizer.json, ...             another one (tokenizer/files/files.hpp)
//   README.md                       model card; license and base_model in its front matter
//
// Or of an adapter: adapter_config.json and adapter_model.safetensors (adapter.hpp).
#include "formats/huggingface/huggingface.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/front_matter.hpp"
#include "formats/huggingface/list_keys.hpp"
#include "formats/huggingface/names.hpp"
#include "formats/huggingface/provenance.hpp"
#include "formats/huggingface/python_json.hpp"
#include "formats/huggingface/write.hpp"
#include "formats/metadata.hpp"
#include "formats/not_a_model.hpp"
#include "io/directory.hpp"
#include "io/source_text.hpp"
#include "model/limits.hpp"
#include "schemes/scheme.hpp"
#include "syntax/value_budget.hpp"
#include "syntax/wide_integers.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/files/tokenizer_json_writer.hpp"
#include "tokenizer/tokens/end_tokens.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using namespace huggingface;

constexpr std::uint64_t kMaxJsonFileBytes = std::uint64_t{256} << 20;  // config.json, an index, ...
constexpr std::uint64_t kFrontMatterBytes = 1 << 20;                   // of the README, which contain its front matter

// For messages: JSON's integers may have any number of digits.
std::string shortened(const std::string& digits) {
  constexpr std::size_t kMost = 40;
  return digits.size() <= kMost ? digits : fmt::format("{}... ({} digits)", digits.substr(0, kMost), digits.size());
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

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
    {".msgpack", ", which Poise does not read: save the model from PyTorch with safe_serialization=True"},
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

// Where a directory has its tensors.
struct Weights {
  const Format* format = nullptr;
  std::string name;  // of the only file, or of the index
  bool is_index = false;

  const WeightFiles& files() const { return *format->weight_files; }
};

// The only file of the format.
std::optional<std::string> only_file(const fs::path& directory, const Format& format) {
  std::vector<std::string> found;
  for (DirectoryEntry& entry : list_directory(directory)) {
    if (entry.name.ends_with(format.info.extension)) found.push_back(std::move(entry.name));
  }
  return found.size() == 1 && found[0].find("-of-") == std::string::npos ? std::optional(found[0]) : std::nullopt;
}

std::optional<Weights> find_weights(const fs::path& directory) {
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    const WeightFiles& files = *format->weight_files;
    if (is_there(directory / files.names[0])) return Weights{format, std::string(files.names[0]), false};
    if (is_there(directory / files.index)) return Weights{format, std::string(files.index), true};
  }
  for (const Format* format : all_formats()) {
    if (!format->weight_files) continue;
    for (const std::string_view name : format->weight_files->names) {
      if (is_there(directory / name)) return Weights{format, std::string(name), false};
    }
    if (!format->weight_files->any_name) continue;
    if (auto name = only_file(directory, *format)) return Weights{format, *std::move(name), false};
  }
  return std::nullopt;
}

Weights require_weights(const fs::path& directory) {
  if (auto found = find_weights(directory)) return *std::move(found);
  std::vector<std::string> missing;
  if (!is_there(directory / kConfig)) missing.emplace_back(kConfig);
  missing.push_back(fmt::format("{} (or {})", kSingle, kIndex));
  throw Error(ErrorKind::invalid_file,
              fmt::format("this directory is not a Hugging Face model; missing: {}{}", fmt::join(missing, ", "),
                          why_no_weights(directory)),
              directory.string());
}

// Opens files of the directory and records them.
class Directory {
 public:
  Directory(fs::path path, const ReadOptions& options) : path_(std::move(path)), options_(options) {}

  const fs::path& path() const { return path_; }

  SourcePtr open(std::string_view name) {
    SourcePtr source = Source::open(path_ / name, options_.io);
    opened_.push_back(source);
    files_.push_back(path_ / name);
    size_ += source->size();
    return source;
  }

  // Files whose bytes are written again if the model has not changed them. Skips unreadable files that were not needed.
  std::vector<DirectoryFile> other_files() {
    std::vector<DirectoryFile> files;
    const auto add = [&](std::string_view name) {
      std::error_code ignored;
      if (!fs::is_regular_file(path_ / name, ignored)) return;
      const std::string path = (path_ / name).string();
      const auto found = std::ranges::find(opened_, path, [](const SourcePtr& source) { return source->name(); });
      try {
        files.push_back({std::string(name), found != opened_.end() ? *found : open(name)});
      } catch (const Error&) {
      }
    };
    std::ranges::for_each(kTokenizerFiles, add);
    std::ranges::for_each(additional_templates(path_), add);
    add(kGeneration);
    return files;
  }

  std::string text(std::string_view name) {
    const SourcePtr source = open(name);
    if (source->size() > kMaxJsonFileBytes)
      throw Error(ErrorKind::invalid_file, fmt::format("{} bytes are too many for this file", source->size()),
                  source->name());
    return read_text(*source, source->size());
  }

  // The model card is not part of the model: it may be absent, empty or anything else.
  std::string readme() {
    const fs::path file = path_ / kReadme;
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return {};
    const SourcePtr source = Source::open(file, options_.io);
    files_.push_back(file);
    size_ += source->size();
    return read_text(*source, std::min(source->size(), kFrontMatterBytes));
  }

  // Warns of numbers that JSON lacks, and of those that are not kept exactly.
  Attributes json_object(std::string_view name, std::vector<Finding>& warnings) {
    const std::string source = (path_ / name).string();
    std::vector<std::string> numbers;
    const std::string text_there = without_non_finite(text(name), numbers);
    Value value = parse_json(text_there, source);
    if (!numbers.empty())
      warnings.push_back({Severity::warning,
                          fmt::format("{} is not JSON: null takes its place", fmt::join(numbers, ", ")), source,
                          std::nullopt});
    for (const std::string& integer : wide_integers(text_there))
      warnings.push_back({Severity::warning,
                          fmt::format("the integer {} has more than 64 bits: {} takes its place", shortened(integer),
                                      to_json(parse_json(integer, source))),
                          source, std::nullopt});
    if (value.get_if<Attributes>() == nullptr) throw Error(ErrorKind::invalid_file, "JSON: expected an object", source);
    return std::move(value).take<Attributes>();
  }

  Origin origin() const { return {path_, "huggingface", size_, files_}; }
  std::span<const SourcePtr> opened() const { return opened_; }

 private:
  fs::path path_;
  ReadOptions options_;
  std::vector<fs::path> files_;
  std::vector<SourcePtr> opened_;
  std::uint64_t size_ = 0;
};

// The tensors of each shard, from the index.
using ShardMap = std::map<std::string, std::set<std::string>>;

ShardMap read_index(Directory& directory, const std::string& index, std::vector<Finding>& warnings) {
  const std::string path = (directory.path() / index).string();
  const Attributes root = directory.json_object(index, warnings);
  const Value* value = root.find("weight_map");
  const auto* map = value == nullptr ? nullptr : value->get_if<Attributes>();
  if (map == nullptr) throw Error(ErrorKind::invalid_file, "index: weight_map: expected an object", path);
  if (map->size() > kMaxTensors)
    throw Error(ErrorKind::invalid_file, fmt::format("index: weight_map: more than {} tensors", kMaxTensors), path);
  ShardMap shards;
  for (const auto& [tensor, shard] : *map) {
    const auto* name = shard.get_if<std::string>();
    if (name == nullptr)
      throw Error(ErrorKind::invalid_file, fmt::format("index: weight_map: {}: expected a file name", tensor), path);
    if (name->empty() || *name == "." || *name == ".." ||
        name->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("index: weight_map: {}: \"{}\" is not a plain file name inside the directory", tensor, *name),
          path);
    }
    shards[*name].insert(tensor);
  }
  return shards;
}

void require_shards(const Directory& directory, const std::string& index, const ShardMap& shards) {
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::string> absent;
  std::size_t more = 0;
  for (const auto& [shard, tensors] : shards) {
    if (is_there(directory.path() / shard)) continue;
    if (absent.size() < kMostNamed) {
      absent.push_back(fmt::format("{} ({} tensor{})", shard, tensors.size(), tensors.size() == 1 ? "" : "s"));
    } else {
      ++more;
    }
  }
  if (absent.empty()) return;
  if (more > 0) absent.push_back(fmt::format("and {} more", more));
  throw Error(ErrorKind::not_found,
              fmt::format("the index names files that are not there: {}", fmt::join(absent, ", ")),
              (directory.path() / index).string());
}

class TensorCollector {
 public:
  // Leaves out tensors that the model's family computes or does not use.
  TensorCollector(Model& model, const WeightFiles& files)
      : model_(model), files_read_(files), family_(model.config ? &family_of(model) : nullptr) {}

  // `look_at` first gets the name of every tensor of the file.
  void add(const SourcePtr& source, const std::string& path, FunctionRef<void(const std::string& name)> look_at) {
    const auto take = [&](Tensor tensor) {
      look_at(tensor.name);
      if (const std::string why = why_left_out(tensor.name); why.empty()) {
        model_.add(std::move(tensor));
      } else {
        model_.warnings.push_back(
            {Severity::warning, fmt::format("tensor {} is left out: {}", tensor.name, why), path, std::nullopt});
      }
    };
    const Attributes metadata = files_read_.read(source, take, model_.warnings);
    for (const auto& [key, value] : metadata) {
      if (!keys_.insert(key).second) continue;
      if (!budget_.take_value() || !budget_.take_key(keys_.size()))
        throw Error(ErrorKind::invalid_file, "the shards hold too much metadata together", path);
      metadata_.emplace_back(key, value);
    }
    files_.emplace_back(path);
  }

  // Moves the shards' metadata into the model. Returns the files.
  std::vector<fs::path> finish() {
    model_.attributes = Attributes::from_unique(std::move(metadata_));
    return std::move(files_);
  }

 private:
  // Empty if it stays.
  std::string why_left_out(std::string_view tensor) const {
    if (family_ == nullptr) return {};
    if (const ComputedTensor* computed = computed_tensor(*family_, tensor))
      return fmt::format("it is computed from {}", computed->from);
    const bool unused = model_.config->tie_word_embeddings && table_name(*family_, tensor) == family_->output;
    return std::string(unused ? kUnusedOutput : "");
  }

  Model& model_;
  const WeightFiles& files_read_;
  const Family* family_;                     // null if unknown
  std::vector<Attributes::Entry> metadata_;  // if shards disagree about a key, the first one's value
  std::unordered_set<std::string> keys_;
  ValueBudget budget_{0};  // of all shards together
  std::vector<fs::path> files_;
};

// Returns the weight files.
std::vector<fs::path> read_tensors(Model& model, Directory& directory, const Weights& weights) {
  TensorCollector collector(model, weights.files());
  if (!weights.is_index) {
    collector.add(directory.open(weights.name), (directory.path() / weights.name).string(), [](const std::string&) {});
    return collector.finish();
  }
  const ShardMap shards = read_index(directory, weights.name, model.warnings);
  require_shards(directory, weights.name, shards);
  std::vector<std::string> faults;
  for (const auto& [shard, promised] : shards) {
    std::set<std::string> found;
    collector.add(directory.open(shard), (directory.path() / shard).string(),
                  [&](const std::string& name) { found.insert(name); });
    for (const std::string& name : promised) {
      if (!found.contains(name))
        add_fault(faults, fmt::format("the index says that {} holds {}; it does not", shard, name));
    }
    for (const std::string& name : found) {
      if (!promised.contains(name))
        add_fault(faults, fmt::format("{} holds {}, which the index does not put there", shard, name));
    }
  }
  throw_faults(faults, (directory.path() / weights.name).string());
  return collector.finish();
}

// The embedding's rows, where config.json does not say how many tokens there are.
void set_vocab_size(Model& model) {
  if (!model.config || model.config->vocab_size != 0) return;
  const Family& family = family_of(model);
  const Tensor* embedding = find_weight(model, family, family.embedding);
  if (embedding != nullptr && !embedding->shape.empty())
    model.config->vocab_size = static_cast<std::int64_t>(embedding->shape[0]);
}

void read_vocabulary(Model& model, Directory& directory) {
  const std::vector<std::string> names = tokenizer_file_names();
  const std::uint64_t rows =
      model.config && model.config->vocab_size > 0 ? static_cast<std::uint64_t>(model.config->vocab_size) : kMaxTokens;
  auto found = read_tokenizer_files(
      directory.path(), [&](std::string_view name) { return directory.open(name); }, rows);
  if (!found) {
    for (const std::string& name : names) {
      if (is_there(directory.path() / name))
        throw Error(ErrorKind::invalid_file, "this is not a regular file", (directory.path() / name).string());
    }
    if (model.vocabulary) return;  // of Poise's own metadata
    model.warnings.push_back({Severity::warning,
                              fmt::format("there is no {}: the model has no vocabulary", fmt::join(names, ", ")),
                              directory.path().string(), std::nullopt});
    return;
  }
  model.vocabulary = std::move(found->vocabulary);
  if (const auto& texts = found->left_out; !texts.empty()) {
    model.warnings.push_back(
        {Severity::warning,
         fmt::format("vocab_size is {}: {} that tokenizer_config.json or added_tokens.json "
                     "{} after them {} left out, the first is {}",
                     rows, texts.size() == 1 ? "1 token" : fmt::format("{} tokens", texts.size()),
                     texts.size() == 1 ? "adds" : "add", texts.size() == 1 ? "is" : "are", texts.front()),
         directory.path().string(), std::nullopt});
  }
  if (!model.config) return;
  model.vocabulary->max_length = static_cast<std::int32_t>(model.config->max_position_embeddings);
  drop_usual_config(*model.vocabulary);
}

// Folds the matrices of a quantized directory into one tensor each. The identifier uses the parts as stored, whose
// bytes are cheaper.
Model with_folded_matrices(Model model, const fs::path& directory) {
  if (!find_quantization(model.config_json) || follows_quantization(model)) return model;
  if (model.card.uuid.empty()) model.card.uuid = content_uuid(model);
  try {
    return folded(std::move(model));
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), directory.string());
  }
}

Model read_directory(Directory& directory, const Weights& found, const ReadOptions& options) {
  Model model;
  model.origin.path = directory.path();
  const bool has_config = is_there(directory.path() / kConfig);
  if (has_config) {
    take_config(model, directory.json_object(kConfig, model.warnings), (directory.path() / kConfig).string());
  } else {
    model.warnings.push_back({Severity::warning,
                              fmt::format("there is no {}: the tensors are read, and what their file says", kConfig),
                              directory.path().string(), std::nullopt});
  }
  const std::vector<fs::path> weights = read_tensors(model, directory, found);
  if (!has_config) take_text_attributes(model);
  set_vocab_size(model);
  read_vocabulary(model, directory);
  if (is_there(directory.path() / kGeneration))
    model.attributes.set(std::string(kGenerationConfig), directory.json_object(kGeneration, model.warnings));
  const std::string model_type = model.card.model_type;
  const std::optional<Card> written = has_config ? take_card_text(model) : std::optional(model.card);  // by Poise
  model.card = written ? *written : read_card(model.config_json, directory.readme(), directory.path(), weights);
  model.card.model_type = model_type;
  std::vector<DirectoryFile> other_files = directory.other_files();
  model.origin = directory.origin();
  model.origin.other_files = std::move(other_files);
  if (!options.raw) model = with_folded_matrices(std::move(model), directory.path());
  if (find_family(model_type) != nullptr) throw_faults(check_consistency(model), directory.path().string());
  if (model.card.uuid.empty()) model.card.uuid = content_uuid(model);
  return model;
}

// Its model's configuration and vocabulary, which may stand next to it, say nothing of the thin matrices.
Model read_adapter(Directory& directory, const Weights& found) {
  Model model;
  model.origin.path = directory.path();
  Attributes config = directory.json_object(kAdapter, model.warnings);
  (void)read_tensors(model, directory, found);
  model.attributes.set(std::string(kAdapterConfig), std::move(config));
  model.origin = directory.origin();
  if (const auto adapter = huggingface::adapter(model, nullptr)) model.card.base_model = adapter->base_model;
  return model;
}

bool is_adapter(const fs::path& directory, const Weights& weights) {
  return weights.name.starts_with("adapter_model.") && is_there(directory / kAdapter);
}

Model read(const Input& input, const ReadOptions& options) {
  const Weights weights = require_weights(input.path);
  Directory directory(input.path, options);
  try {
    return is_adapter(input.path, weights) ? read_adapter(directory, weights)
                                           : read_directory(directory, weights, options);
  } catch (const Error& error) {
    refuse_non_model(error, directory.opened());
    throw;
  }
}

// The files with tensors of a model, as files of their own format.
std::vector<Input> weight_inputs(const Weights& weights, const Model& model) {
  const fs::path extension = fs::path(weights.files().names[0]).extension();
  std::vector<Input> inputs;
  for (const fs::path& path : model.origin.files) {
    if (path.extension() == extension) inputs.push_back({path, Source::open(path)});
  }
  return inputs;
}

std::vector<Finding> audit(const Input& input, const Model& model) {
  std::vector<Finding> findings = adapter_findings(model);
  const auto weights = find_weights(input.path);
  if (!weights || weights->format->audit == nullptr) return findings;
  for (const Input& file : weight_inputs(*weights, model))
    std::ranges::move(weights->format->audit(file, model), std::back_inserter(findings));
  return findings;
}

std::size_t checksums(const Input& input, const Model& model) {
  const auto weights = find_weights(input.path);
  if (!weights || weights->format->checksums == nullptr) return 0;
  std::size_t count = 0;
  for (const Input& file : weight_inputs(*weights, model)) count += weights->format->checksums(file, model);
  return count;
}

}  // namespace

const Format kHuggingFace = {
    .info = {"huggingface", "a Hugging Face model directory", ""},
    .extensions = {},
    .options = {.shard_size = true},
    .holds_bf16 = true,
    .holds_layout = [](const LayoutType& type) { return &type == &layouts::groups; },
    .ties_by_absence = true,
    .weights = WeightReader::transformers,
    .container = Container::directory,  // of any members: the reader reports missing ones
    .refusal_to_replace = huggingface::refusal_to_replace,
    .read = read,
    .prepare = huggingface::prepare,
    .audit = audit,
    .checksums = checksums,
    .keys = huggingface::list_keys,
    .adapter = huggingface::adapter,
};

}  // namespace poise
