// The layout of a Hugging Face model directory (docs/formats/huggingface.md):
//
//   config.json                     hyperparameters; if it is missing, Poise warns
//   hf_quant_config.json, ...       how matrices are quantized, if config.json does not state it (directory.hpp)
//   generation_config.json          how to generate; kept as an attribute
//   model.safetensors               all tensors, or
//   model.safetensors.index.json    {"weight_map": {tensor: shard}}, and the shards next to it
//   pytorch_model.bin, ...          the same in other formats: Format::weight_files
//   tokenizer.model                 SentencePiece vocabulary, or
//   tokenizer.json, ...             another one (tokenizer/files/files.hpp)
//   README.md                       model card; license and base_model in its front matter
//
// The directory of an adapter has adapter_config.json and adapter_model.safetensors instead (adapter.hpp).
#include "formats/registry.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "family/tied_output.hpp"
#include "formats/faulty_model.hpp"
#include "formats/fold.hpp"
#include "formats/front_matter.hpp"
#include "formats/huggingface/adapter.hpp"
#include "formats/huggingface/directory.hpp"
#include "formats/huggingface/write.hpp"
#include "formats/input.hpp"
#include "formats/metadata.hpp"
#include "io/directory.hpp"
#include "model/fault_lists.hpp"
#include "model/limits.hpp"
#include "schemes/unfolded_codes.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using namespace huggingface;

// Sets vocab_size to the number of the embedding's rows if config.json does not state it.
void set_vocab_size(Model& model) {
  if (!model.config || model.config->vocab_size != 0) return;
  const Family& family = find_family_or_llama(model);
  const Tensor* embedding = find_weight(model, family, family.embedding);
  if (embedding == nullptr && model.config->tie_word_embeddings) embedding = find_weight(model, family, family.output);
  if (embedding != nullptr && !embedding->shape.empty())
    model.config->vocab_size = static_cast<std::int64_t>(embedding->shape[0]);
}

// Throws for a file of the tokenizer that is not a regular file, such as a pipe or a broken link.
void require_regular_tokenizer_files(const Container& files) {
  for (const std::string_view name : kTokenizerFiles) {
    if (!files.has(name) || files.has_file(name)) continue;
    std::error_code ignored;
    if (files.kind() == ContainerKind::directory && fs::exists(files.path(name), ignored))
      throw Error(ErrorKind::invalid_file, "this is not a regular file", files.path(name).string());
    (void)files.open(name);  // throws for a broken link
  }
}

void read_vocabulary(Model& model, DirectoryReader& directory) {
  require_regular_tokenizer_files(directory.container());
  const std::vector<std::string> names = list_tokenizer_files();
  const std::uint64_t rows =
      model.config && model.config->vocab_size > 0 ? static_cast<std::uint64_t>(model.config->vocab_size) : kMaxTokens;
  auto found = read_tokenizer_files(
      directory.container(), [&](std::string_view name) { return directory.open(name); }, rows);
  if (!found) {
    if (model.vocabulary) return;  // the vocabulary comes from Poise's own metadata
    warn(model.warnings, fmt::format("there is no {}: the model has no vocabulary", fmt::join(names, ", ")),
         directory.path());
    return;
  }
  model.vocabulary = std::move(found->vocabulary);
  if (const auto& texts = found->left_out; !texts.empty()) {
    warn(model.warnings,
         fmt::format("vocab_size is {}: {} that tokenizer_config.json or added_tokens.json "
                     "{} beyond it {} left out, the first is {}",
                     rows, format_count(texts.size(), "token"), texts.size() == 1 ? "adds" : "add",
                     texts.size() == 1 ? "is" : "are", texts.front()),
         directory.path());
  }
  if (!model.config) return;
  model.vocabulary->max_length = static_cast<std::int32_t>(model.config->max_position_embeddings);
  drop_usual_config(*model.vocabulary);
}

// Throws a FaultyModel with all inconsistencies, so that verify() can report each of them and check the tensors.
void throw_if_inconsistent(Model& model, const DirectoryReader& directory) {
  std::vector<Finding> findings = find_inconsistencies(model);
  if (findings.empty()) return;
  const std::string path = directory.path().string();
  const std::string message = format_faults(findings);
  for (Finding& finding : findings) {
    if (finding.path.empty()) finding.path = path;
  }
  throw FaultyModel(message, path, std::move(findings), std::move(model));
}

// Reads the card from config.json and the front matter of README.md.
Card read_card_of_readme(Model& model, DirectoryReader& directory) {
  const FrontMatter front_matter(directory.read_readme());
  if (!front_matter.problem().empty())
    warn(model.warnings,
         fmt::format(
             "the text between the lines --- is not YAML, so its license, base model and author are not read: {}",
             front_matter.problem()),
         directory.path(kModelCard));
  return read_card(model.config_json, front_matter);
}

Model read_directory(DirectoryReader& directory, const LocatedWeights& found, const ReadOptions& options) {
  Model model;
  model.origin.path = directory.path();
  const bool has_config = directory.has(kConfig);
  if (has_config) {
    parse_config(model, directory.read_json_object(kConfig, model.warnings), directory.path(kConfig).string());
  } else {
    warn(model.warnings, fmt::format("there is no {}: the model has no hyperparameters", kConfig), directory.path());
  }
  (void)read_tensors(model, directory, found);
  if (auto resolved = resolve_aliases(model)) model = *std::move(resolved);
  if (!has_config) parse_text_attributes(model);
  const std::string_view quantization_file = read_quantization_file(model, directory);
  set_vocab_size(model);
  read_vocabulary(model, directory);
  if (directory.has(kGeneration))
    model.attributes.set(std::string(kGenerationConfig), directory.read_json_object(kGeneration, model.warnings));
  const std::string model_type = model.card.model_type;
  // Poise writes the card into the metadata of the weights.
  const std::optional<Card> written = has_config ? parse_card(model) : std::optional(model.card);
  model.card = written ? *written : read_card_of_readme(model, directory);
  model.card.model_type = model_type;
  std::vector<DirectoryFile> other_files = directory.read_other_files(model.warnings);
  model.origin = directory.origin();
  model.origin.other_files = std::move(other_files);
  model = fold_directory(std::move(model), directory.path(), quantization_file, options);
  if (auto resolved = resolve_tied_output(model)) model = *std::move(resolved);
  // The parts of codes have other names than the family's tensors.
  const bool has_parts = options.raw && has_unfolded_codes(model);
  if (find_family(model_type) != nullptr && !has_parts) throw_if_inconsistent(model, directory);
  return model;
}

// Reads an adapter. Ignores configuration and vocabulary of a model in the same directory, since they do not describe
// the thin matrices.
Model read_adapter(DirectoryReader& directory, const LocatedWeights& found) {
  Model model;
  model.origin.path = directory.path();
  Attributes config = directory.read_json_object(kAdapter, model.warnings);
  (void)read_tensors(model, directory, found);
  model.attributes.set(std::string(kAdapterConfig), std::move(config));
  model.origin = directory.origin();
  if (auto card = parse_card(model)) model.card = *std::move(card);  // written by Poise
  const auto adapter = huggingface::read_peft_adapter(model, nullptr);
  if (adapter && model.card.base_model.empty()) model.card.base_model = adapter->base_model;
  return model;
}

Model read(const Input& input, const ReadOptions& options) {
  std::vector<Finding> warnings;
  const auto files = open_model_folder(input, options.io, &warnings);
  const LocatedWeights weights = require_weights(*files);
  const auto adapter = find_adapter(*files);
  DirectoryReader directory(*files);
  try {
    const bool is_adapter = adapter == weights.name;
    Model model = is_adapter ? read_adapter(directory, weights) : read_directory(directory, weights, options);
    std::ranges::move(warnings, std::back_inserter(model.warnings));
    if (adapter && !is_adapter)
      warn(model.warnings, fmt::format("there is an adapter, too: {}; open it by its own path", *adapter), input.path);
    return model;
  } catch (const Error& error) {
    refuse_non_model(error, directory.opened());
    throw;
  }
}

// Returns the files that the model's tensors are from, as inputs of their own format.
std::vector<Input> list_weight_inputs(const LocatedWeights& weights, const Container& files, const Model& model) {
  const fs::path extension = fs::path(weights.files().names[0]).extension();
  std::vector<Input> inputs;
  for (const std::string& name : files.list_names()) {
    const bool is_read = std::ranges::find(model.origin.files, files.locate_file(name)) != model.origin.files.end();
    if (is_read && is_plain_file_name(name) && fs::path(name).extension() == extension && files.has_file(name))
      inputs.push_back({files.path(name), files.open(name)});
  }
  return inputs;
}

// Finds dangerous code in all files of the directory, since programs also load others than the weights: an optimizer's
// state, training arguments, the same weights in another format. Skips findings that reading the model has reported.
std::vector<Finding> find_dangerous_code(const Container& files, const Model& model) {
  std::vector<Finding> findings;
  for (const std::string& name : files.list_names()) {
    if (!files.has_file(name)) continue;
    try {
      std::ranges::move(find_dangerous_code_in_file(files.open(name), model.warnings), std::back_inserter(findings));
    } catch (const Error& error) {
      const bool is_of_the_file = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
      findings.push_back({is_of_the_file ? Severity::error : Severity::warning, error.message(),
                          files.path(name).string(), error.offset()});
    }
  }
  return findings;
}

std::vector<Finding> audit(const Input& input, const Model& model) {
  std::vector<Finding> findings = check_adapter(model);
  const auto files = open_model_folder(input, IoMode::map);
  const auto located = find_weights(*files);
  const std::vector<Input> weights = located ? list_weight_inputs(*located, *files, model) : std::vector<Input>();
  std::ranges::move(files->check_checksums(), std::back_inserter(findings));
  std::ranges::move(find_dangerous_code(*files, model), std::back_inserter(findings));
  if (!located || located->format->audit == nullptr) return findings;
  for (const Input& file : weights)
    std::ranges::move(located->format->audit(file, model), std::back_inserter(findings));
  return findings;
}

std::size_t count_checksums(const Input& input, const Model& model) {
  const auto files = open_model_folder(input, IoMode::map);
  const auto weights = find_weights(*files);
  std::size_t count = files->count_checksums();
  if (!weights || weights->format->count_checksums == nullptr) return count;
  for (const Input& file : list_weight_inputs(*weights, *files, model))
    count += weights->format->count_checksums(file, model);
  return count;
}

// Returns the directory's index if the file has the name of a shard ("-of-") of the index's format, else only the file.
LocatedWeights locate_weights(const std::string& name, const Format& format, const Container& files) {
  const auto located = find_weights(files);
  const bool is_shard = located && located->is_index && located->format == &format && name.find("-of-") != name.npos;
  return is_shard ? *located : LocatedWeights{&format, name, false};
}

}  // namespace

std::optional<Model> open_with_directory(const fs::path& weights, std::string_view format, const ReadOptions& options) {
  const std::string name = weights.filename().string();
  const auto all = list_all_formats();
  const auto row = std::ranges::find_if(
      all, [&](const Format* candidate) { return candidate->weight_files && candidate->info.name == format; });
  if (row == all.end() || name.starts_with("adapter_model.")) return std::nullopt;
  const fs::path folder = weights.has_parent_path() ? weights.parent_path() : fs::path(".");
  const auto files = open_container(ContainerKind::directory, folder, nullptr, options.io);
  if (!files->has_file(kConfig)) return std::nullopt;
  DirectoryReader directory(*files);
  return read_directory(directory, locate_weights(name, **row, *files), options);
}

const Format kHuggingFace = {
    .info = {"huggingface", "a Hugging Face model directory", ""},
    .options = {.shard_size = true},
    .holds_bf16 = true,
    .holds_layout = [](const LayoutType& type) { return &type == &layouts::groups; },
    .weights = WeightReader::transformers,
    .make_codes_test = huggingface::make_codes_test,
    .container = ContainerKind::directory,  // the directory may have any members: the reader reports missing ones
    .holds_in_archive = [](const MemberNames& names) { return !find_model_folders(names).empty(); },
    .explain_refusal = huggingface::explain_refusal_to_replace,
    .read = read,
    .prepare = huggingface::prepare,
    .audit = audit,
    .count_checksums = count_checksums,
    .list_keys = huggingface::list_keys,
    .complete_card = huggingface::complete_card,
    .origin = "huggingface",
    .read_adapter = huggingface::read_peft_adapter,
};

}  // namespace poise
