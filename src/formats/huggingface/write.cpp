#include "formats/huggingface/write.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/text_table.hpp"
#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/adapter.hpp"
#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/directory.hpp"
#include "formats/metadata.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "io/meter.hpp"
#include "io/source_range.hpp"
#include "pack/pump.hpp"
#include "schemes/quantization_files.hpp"
#include "schemes/scheme.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/tokens/kept_files.hpp"
#include "tokenizer/tokens/sampling_keys.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "views/dense.hpp"

namespace poise::huggingface {
namespace {

constexpr std::string_view kCardKey = "poise.card";
constexpr std::size_t kMaxShards = 99999;  // names have five digits

constexpr std::array kTorchNames = std::to_array<std::pair<DType, std::string_view>>(
    {{DType::f64, "float64"}, {DType::f32, "float32"}, {DType::f16, "float16"}, {DType::bf16, "bfloat16"}});

// Returns the class with which transformers loads a model; empty if unknown.
std::string_view find_transformers_class(std::string_view model_type) {
  const Family* family = find_family(model_type);
  return family == nullptr ? std::string_view() : family->transformers_class;
}

// Returns torch's name of the element type that has the most bytes among the tensors of real numbers; empty if there
// are none, or if the type is not in kTorchNames.
std::string_view find_torch_dtype(const Model& model) {
  std::map<DType, std::uint64_t> bytes;
  for (const Tensor& tensor : model.tensors()) {
    if (has_float_elements(tensor)) bytes[find_element_type(tensor)] += tensor.size_bytes();
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  if (most == bytes.end()) return {};
  const auto* row = std::ranges::find(kTorchNames, most->first, &std::pair<DType, std::string_view>::first);
  return row == kTorchNames.end() ? std::string_view() : row->second;
}

// Sets the element type. Older files have the key torch_dtype, newer ones dtype, some both. Returns false if the
// configuration has neither.
bool set_dtype(Attributes& config, std::string_view dtype) {
  bool found = false;
  for (const std::string_view name : {"dtype", "torch_dtype"}) {
    if (config.find(name) == nullptr) continue;
    config.set(std::string(name), dtype);
    found = true;
  }
  return found;
}

// Moves the family's keys to the object in which transformers looks for them. A model from a format that lacks
// config.json has no such object.
void nest_family_keys(Attributes& config, const Model& model) {
  const Family& family = find_family_or_llama(model);
  const std::string nested(family.nested);
  if (nested.empty() || !model.config || config.get_if<Attributes>(nested) != nullptr) return;
  const Attributes typed = config_to_attributes(*model.config, model.card.model_type);
  Attributes inner{{"model_type", family.text_type}};
  std::vector<Attributes::Entry> outer;
  for (const auto& [key, value] : config) {
    if (key == nested) continue;  // null
    const bool is_followed = std::ranges::find(family.followed, key) != family.followed.end();
    const bool is_inner = key != "model_type" && (is_followed || typed.find(key) != nullptr);
    if (is_inner) inner.set(key, value);
    // Some versions of transformers look for this key outside.
    if (!is_inner || key == "tie_word_embeddings") outer.emplace_back(key, value);
  }
  outer.emplace_back(nested, std::move(inner));
  config = Attributes::from_unique(std::move(outer));
}

Attributes make_config_json(const Model& model) {
  Attributes config = whole_config(model);
  if (config.empty()) {
    if (!parse_adapter(model, nullptr))
      throw Error(ErrorKind::unsupported, "the model has no configuration, which a Hugging Face directory needs");
    throw Error(ErrorKind::unsupported,
                "this adapter does not have PEFT's names, which a Hugging Face directory needs and which depend on the "
                "base model: merge it into the base model first")
        .with({.kind = Remedy::Kind::lora, .value = model.origin.path.string()});
  }
  require_finite(config);
  if (model.config && model.config->vocab_size == 0) {
    const Tensor* embedding = model.find(find_family_or_llama(model).embedding);
    if (embedding != nullptr && !embedding->shape.empty()) config.set("vocab_size", embedding->shape[0]);
  }
  nest_family_keys(config, model);
  if (const std::string_view name = find_transformers_class(model.card.model_type);
      !name.empty() && config.find("architectures") == nullptr) {
    config.set("architectures", Value::Array{name});
  }
  if (const std::string_view dtype = find_torch_dtype(model); !dtype.empty()) {
    if (!set_dtype(config, dtype)) config.set("torch_dtype", dtype);
    const std::string nested(find_family_or_llama(model).nested);
    if (const auto* map = nested.empty() ? nullptr : config.get_if<Attributes>(nested)) {
      Attributes table = *map;
      if (set_dtype(table, dtype)) config.set(nested, std::move(table));
    }
  }
  return config;
}

// Holds the model's vocabulary, and the attributes that become metadata of the weights: without those of vocabulary,
// card and generation, which are written in other ways.
struct Described {
  std::optional<Vocabulary> vocabulary;
  Attributes attributes;
  std::vector<std::string> losses;
};

// Returns true for GGUF's entry general.type = "model", which needs no attribute in a directory.
bool is_general_type_model(std::string_view key, const Value& value) {
  return key == "general.type" && value == Value("model");
}

Attributes find_generation_config(const Model& model) {
  return model.attributes.find(kGenerationConfig) != nullptr ? read_generation_config(model)
                                                             : make_generation_config(model.attributes);
}

Described separate_vocabulary(const Model& model) {
  Described result;
  DescribedVocabulary found = make_described_vocabulary(model);
  result.vocabulary = found.made ? std::move(found.made) : model.vocabulary;
  if (!found.problem.empty())
    result.losses.push_back(fmt::format("no tokenizer files can be written for the vocabulary: {}", found.problem));
  const bool generation = !find_generation_config(model).empty();
  std::vector<Attributes::Entry> entries;
  if (model.attributes.find("format") == nullptr)
    entries.emplace_back("format", "pt");  // transformers rejects files without it
  const auto is_generation = [](std::string_view key) {
    return key == kGenerationConfig || std::ranges::any_of(kSamplingKeys, [&](const SamplingKey& row) {
             return key.starts_with(kSamplingPrefix) && key.substr(kSamplingPrefix.size()) == row.gguf;
           });
  };
  for (const auto& [key, value] : found.attributes) {
    if (!(generation && is_generation(key)) && key != kCardKey && !is_general_type_model(key, value))
      entries.emplace_back(key, value);
  }
  result.attributes = Attributes::from_unique(std::move(entries));
  return result;
}

// Throws for an incomplete model, because readers of directories reject it.
void require_whole_model(const Model& model) {
  if (model.config && model.size() == 0)
    throw Error(ErrorKind::unsupported,
                "cannot write a Hugging Face directory of an incomplete model: it has no tensors");
  if (find_family(model.card.model_type) == nullptr) return;
  const std::optional<Model> folded_model = merge_quantized_parts(model);
  const std::vector<std::string> faults = check_consistency(folded_model ? *folded_model : model);
  if (faults.empty()) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("cannot write a Hugging Face directory of an incomplete model: {}{}", faults.front(),
                          faults.size() == 1 ? "" : fmt::format(", and {} more faults", faults.size() - 1)));
}

// Converts groups of codes to parts of a scheme. Returns std::nullopt if the model has parts of another scheme, because
// a directory has only one quantization_config; SafetensorsFile then refuses the groups.
std::optional<UnfoldedModel> unfold_model_groups(const Model& model) {
  if (find_reversible_scheme(model.config_json) != nullptr) return std::nullopt;
  const Family& family = find_family_or_llama(model);
  const bool is_tied = model.config && model.config->tie_word_embeddings;
  return unfold_groups(model, family.embedding, is_tied ? family.output : "");
}

// Returns the tokenizer files of the model's original directory if the model still has the vocabulary that they
// describe; otherwise returns no files.
std::vector<DirectoryFile> find_unchanged_tokenizer(const Model& model) {
  std::vector<DirectoryFile> files;
  std::ranges::copy_if(model.origin.other_files, std::back_inserter(files), [](const DirectoryFile& file) {
    return std::ranges::find(kTokenizerFiles, file.name) != kTokenizerFiles.end() || is_additional_template(file.name);
  });
  if (!model.vocabulary || files.empty()) return {};
  try {
    auto read = read_tokenizer_files(files, model.vocabulary->size());
    if (!read) return {};
    read->vocabulary.max_length = model.vocabulary->max_length;  // this number comes from config.json
    drop_usual_config(read->vocabulary);
    if (read->vocabulary == *model.vocabulary) return files;
  } catch (const Error& error) {  // the file has changed since it was read
    if (error.kind() == ErrorKind::io) throw;
  }
  return {};
}

class Directory {
 public:
  Directory(const Model& model, const WriteOptions& options) : model_(model), unfolded_(unfold_model_groups(model)) {
    require_whole_model(model);
    Attributes config = make_config_json(model);
    if (unfolded_ && !unfolded_->config.empty()) config.set("quantization_config", unfolded_->config);
    add_text(kConfig, to_json(config, 2) + "\n");
    const Described what = separate_vocabulary(model);
    add_generation(model, what);
    const Model& stored = unfolded_ ? unfolded_->model : model;
    losses_ = list_safetensors_losses(stored, what.attributes);
    if (unfolded_) std::ranges::copy(unfolded_->losses, std::back_inserter(losses_));
    std::ranges::copy(what.losses, std::back_inserter(losses_));
    if (what.vocabulary) add_tokenizer(*what.vocabulary, find_unchanged_tokenizer(model));
    Attributes metadata = make_text_attributes(what.attributes);
    if (auto card = make_card_text(model.card)) metadata.set(std::string(kCardKey), *std::move(card));
    cut_into_shards(stored, options.shard_size, std::move(metadata));
  }

  FilePlan plan() const {
    FilePlan plan;
    plan.bytes = count_bytes();
    const Model& stored = unfolded_ ? unfolded_->model : model_;
    for (const Tensor& tensor : model_.tensors()) {
      const Tensor* whole = stored.find(tensor.name);  // null: codes, whose parts are written
      plan.tensor_bytes.push_back(whole == nullptr ? tensor.size_bytes() : whole->require("data").blob->size());
    }
    return plan;
  }

  // Returns the names of tensors whose codes become numbers.
  std::vector<std::string> list_decoded_tensors() const {
    std::vector<std::string> names;
    for (const Tensor& tensor : model_.tensors()) {
      if (unfolded_ && tensor.layout == Layout::quantized_group && unfolded_->model.find(tensor.name) != nullptr)
        names.emplace_back(tensor.name);
    }
    return names;
  }

  std::vector<std::string> list_losses() const {
    std::vector<std::string> losses = losses_;
    if (find_transformers_class(model_.card.model_type).empty() &&
        model_.config_json.find("architectures") == nullptr) {
      losses.push_back(model_.card.model_type.empty()
                           ? std::string("transformers will not load the model: it has no model_type")
                           : fmt::format("transformers may not load the model: Poise does not know its class for a {}",
                                         model_.card.model_type));
    }
    return losses;
  }

  void write(Output& output, const Progress& progress) const {
    for (const TokenizerFile& file : texts_) output.open_sibling(file.name).write(std::as_bytes(std::span(file.bytes)));
    for (const DirectoryFile& file : copies_) {
      Sink& sink = output.open_sibling(file.name);
      stream_chunks(*make_source_blob(file.source, 0, file.source->size()),
                    [&](std::span<const std::byte> bytes) { sink.write(bytes); });
    }
    std::uint64_t total = 0;
    for (const SafetensorsFile& shard : shards_) total += shard.tensor_bytes();
    Meter meter(progress, total);
    for (std::size_t i = 0; i < shards_.size(); ++i)
      shards_[i].write(output.open_sibling(make_shard_name(i, shards_.size())), meter);
  }

 private:
  std::uint64_t count_bytes() const {
    std::uint64_t sum = 0;
    for (const TokenizerFile& file : texts_) sum += file.bytes.size();
    for (const DirectoryFile& file : copies_) sum += file.source->size();
    for (const SafetensorsFile& shard : shards_) sum += shard.bytes();
    return sum;
  }

  static std::string make_shard_name(std::size_t index, std::size_t count) {
    return count == 1 ? std::string(kSingle) : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
  }

  void add_text(std::string_view name, std::string bytes) { texts_.push_back({std::string(name), std::move(bytes)}); }

  // Adds the original files. If there are none, or one of them is tokenizer.model, also makes the tokenizer files that
  // are missing.
  void add_tokenizer(const Vocabulary& vocabulary, const std::vector<DirectoryFile>& unchanged) {
    std::ranges::copy(unchanged, std::back_inserter(copies_));
    const auto is_there = [&](std::string_view name) {
      return std::ranges::find(unchanged, name, &DirectoryFile::name) != unchanged.end();
    };
    if (!unchanged.empty() && !is_there("tokenizer.model")) return;
    TokenizerFiles made = make_tokenizer_files(vocabulary);
    for (TokenizerFile& file : made.files) {
      if (!is_there(file.name)) texts_.push_back(std::move(file));
    }
    if (unchanged.empty()) std::ranges::move(made.losses, std::back_inserter(losses_));
  }

  // Adds generation_config.json: the original file if it is unchanged, else a new one. A model that was read without
  // this file gets one in three cases: its attributes describe sampling; several tokens end a text, but a vocabulary
  // has only one eos_id; or the model is from a GGUF or ALT file, whose ids of BOS, EOS and padding belong in this
  // file.
  void add_generation(const Model& model, const Described& what) {
    Attributes generation = find_generation_config(model);
    if (model.attributes.find(kGenerationConfig) == nullptr && what.vocabulary) {
      const std::vector<TokenId> ends = find_end_tokens(model, what.vocabulary->eos_id, what.vocabulary->size());
      // A configuration with "architectures" comes from a directory that had no generation_config.json.
      const std::string& format = model.origin.format;
      const bool has_only_ids =
          (format.starts_with("gguf") || format.starts_with("alt-")) && !model.config_json.find("architectures");
      if (ends.size() < 2 && generation.empty() && !has_only_ids) return;
      if (what.vocabulary->bos_id >= 0) generation.set("bos_token_id", what.vocabulary->bos_id);
      if (ends.size() == 1) generation.set("eos_token_id", std::int64_t{ends.front()});
      if (ends.size() > 1) generation.set("eos_token_id", Value::Array(ends.begin(), ends.end()));
      if (what.vocabulary->pad_id >= 0) generation.set("pad_token_id", what.vocabulary->pad_id);
    }
    if (generation.empty()) return;
    const auto file = std::ranges::find(model.origin.other_files, kGeneration, &DirectoryFile::name);
    if (file != model.origin.other_files.end() && has_content(*file, generation)) return copies_.push_back(*file);
    add_text(kGeneration, to_json(generation, 2) + "\n");
  }

  static bool has_content(const DirectoryFile& file, const Attributes& object) {
    try {
      return parse_json(read_text(*file.source, file.source->size()), file.name) == Value(object);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      return false;
    }
  }

  // Cuts the tensors, in the model's order, into shards. The first shard has the attributes.
  void cut_into_shards(const Model& model, const std::optional<std::uint64_t>& most, Attributes metadata) {
    std::vector<std::vector<const Tensor*>> shards(1);
    std::uint64_t bytes = 0;
    std::uint64_t total = 0;
    for (const Tensor& tensor : model.tensors()) {
      const std::uint64_t size = tensor.size_bytes();
      if (most && !shards.back().empty() && saturating_add(bytes, size) > *most) {
        shards.emplace_back();
        bytes = 0;
      }
      shards.back().push_back(&tensor);
      bytes = saturating_add(bytes, size);
      total = saturating_add(total, size);
    }
    if (shards.size() > kMaxShards) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("the model would have more than {} files: choose a larger shard size", kMaxShards));
    }
    std::map<std::string, std::string> where;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      for (const Tensor* tensor : shards[i]) where.emplace(tensor->name, make_shard_name(i, shards.size()));
      shards_.emplace_back(std::move(shards[i]), i == 0 ? std::move(metadata) : Attributes{{"format", "pt"}});
    }
    if (shards.size() == 1) return;
    std::vector<Attributes::Entry> map;
    for (auto& [tensor, shard] : where) map.emplace_back(tensor, std::move(shard));
    add_text(kIndex, to_json(Attributes{{"metadata", Attributes{{"total_size", total}}},
                                        {"weight_map", Attributes::from_unique(std::move(map))}},
                             2) +
                         "\n");
  }

  const Model& model_;
  std::optional<UnfoldedModel> unfolded_;  // the model with parts of its groups; std::nullopt: no groups to unfold
  std::vector<TokenizerFile> texts_;
  std::vector<DirectoryFile> copies_;  // files of the input that the model has not changed
  std::vector<std::string> losses_;    // all losses but the one that list_losses() adds
  std::vector<SafetensorsFile> shards_;
};

// Writes a directory in PEFT's form.
class AdapterDirectory {
 public:
  AdapterDirectory(const Model& model, const Attributes& config)
      : model_(model),
        config_(to_json(config, 2) + "\n"),
        attributes_(list_other_attributes(model)),
        file_(make_weights_file(model)) {}

  FilePlan plan() const {
    FilePlan plan;
    plan.bytes = config_.size() + file_.bytes();
    for (const Tensor& tensor : model_.tensors()) plan.tensor_bytes.push_back(tensor.size_bytes());
    return plan;
  }
  std::vector<std::string> list_losses() const {
    std::vector<std::string> losses = list_safetensors_losses(model_, attributes_);
    if (model_.vocabulary) losses.emplace_back("the vocabulary is left out: an adapter has that of its base model");
    return losses;
  }
  void write(Output& output, const Progress& progress) const {
    output.open_sibling(std::string(kAdapter)).write(std::as_bytes(std::span(config_)));
    Meter meter(progress, file_.tensor_bytes());
    file_.write(output.open_sibling(std::string(kAdapterWeights)), meter);
  }

 private:
  static Attributes list_other_attributes(const Model& model) {
    Attributes others = model.attributes;
    others.erase(kAdapterConfig);
    if (others.find("format") == nullptr) others.set("format", "pt");  // PEFT rejects files without it
    return others;
  }
  SafetensorsFile make_weights_file(const Model& model) const {
    std::vector<const Tensor*> tensors;
    for (const Tensor& tensor : model.tensors()) tensors.push_back(&tensor);
    Attributes metadata = make_text_attributes(attributes_);
    if (auto card = make_other_card(model)) metadata.set(std::string(kCardKey), *std::move(card));
    return {std::move(tensors), std::move(metadata)};
  }
  // Returns the JSON of the card, without a base model that adapter_config.json also has; std::nullopt if no other
  // field is set.
  static std::optional<std::string> make_other_card(const Model& model) {
    Card card = model.card;
    const auto adapter = huggingface::read_peft_adapter(model, nullptr);
    if (adapter && card.base_model == adapter->base_model) card.base_model.clear();
    return make_card_text(card);
  }

  const Model& model_;
  std::string config_;
  Attributes attributes_;  // all but the configuration
  SafetensorsFile file_;
};

template <typename File>
PreparedFile make_prepared_file(std::shared_ptr<const File> file) {
  return {.plan = [file] { return file->plan(); },
          .losses = file->list_losses(),
          .write = [file](Output& output, const Progress& progress) { file->write(output, progress); }};
}

}  // namespace

PreparedFile prepare(const Model& model, const WriteOptions& options) {
  const auto adapter = whole_config(model).empty() ? find_adapter_config(model) : std::nullopt;
  if (adapter) {
    if (options.shard_size) throw Error(ErrorKind::unsupported, "an adapter is one file and cannot be sharded");
    return make_prepared_file(std::make_shared<const AdapterDirectory>(model, *adapter));
  }
  const auto directory = std::make_shared<const Directory>(model, options);
  PreparedFile file = make_prepared_file(directory);
  file.decoded_tensors = directory->list_decoded_tensors();
  return file;
}

std::function<std::string_view(const Tensor&, const StoredType&)> make_codes_test(const Model& model) {
  return [embedding = find_family_or_llama(model).embedding](const Tensor& tensor, const StoredType& type) {
    return explain_numbers(tensor, type.groups.bits, embedding);
  };
}

std::string explain_refusal_to_replace(const MemberNames& names) {
  constexpr std::array kModelFiles = {kConfig, kAdapter, kGeneration, kIndex, kReadme};
  constexpr std::array kOtherFiles = std::to_array<std::string_view>(
      {".gitattributes", "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", "USE_POLICY.md", "params.json"});
  constexpr std::array kKnown = join_tables(kModelFiles, kOtherFiles, kTokenizerFiles);
  const auto is_weights = [](const std::string& name) { return name.ends_with(".safetensors"); };
  const auto is_quantization = [](const std::string& name) {
    return std::ranges::find(list_quantization_files(), name, &QuantizationFile::name) !=
           list_quantization_files().end();
  };
  for (const std::string& name : names) {
    if (!is_weights(name) && !is_additional_template(name) && !is_quantization(name) &&
        std::ranges::find(kKnown, name) == kKnown.end())
      return fmt::format("the directory holds {}, which is not a file of a model that Poise knows", name);
  }
  const bool is_model = std::ranges::any_of(
      names, [&](const std::string& name) { return is_weights(name) || name == kConfig || name == kIndex; });
  return is_model ? "" : fmt::format("the directory holds neither {} nor a safetensors file", kConfig);
}

}  // namespace poise::huggingface
