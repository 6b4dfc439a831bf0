// Writes ALT version 2, in its canonical form or that of the program alt.c, and version 1.
//
// For a model without configuration, the configuration's fields in the parameters section are zeros and empty texts.
// For a model without vocabulary, the tokenizer section has no tokens, and ids of -1. Readers recognize both cases.
#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "codec/affine.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/alt/alt.hpp"
#include "formats/alt/layout.hpp"
#include "formats/alt/sections.hpp"
#include "formats/alt/write_sections.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/kept_files.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "views/affine.hpp"

namespace poise::alt {
namespace {

// Returns the data_type of a tensor. Throws unsupported, with advice, if version 2 has no code for the tensor's layout
// and element type.
std::int32_t find_data_type_v2(const Tensor& tensor) {
  const bool affine = tensor.layout == Layout::affine;
  if (tensor.layout != Layout::dense && !affine) refuse_tensor("alt", tensor);
  const DType dtype = tensor.require("data").dtype;
  const auto code = find_spelling(kCodes, dtype);
  if (!code || affine != (poise::info(dtype).kind == DTypeKind::quantized)) refuse_tensor("alt", tensor);
  return *code;
}

SectionWriter make_tensor_header(const Tensor& tensor, const Hints& hints, const Affine& affine) {
  SectionWriter out(fmt::format("tensor {}", tensor.name));
  out.write_i32("component_type", hints.component_type);
  out.write_i32("block_index", hints.block_index);
  out.write_i32("layer_type", hints.layer_type);
  out.write_i32("projection_type", hints.projection_type);
  out.write_count("n_dims", tensor.shape.size());
  for (const std::uint64_t dimension : tensor.shape) out.write_count("dimension", dimension);
  out.write_text("name", tensor.name);
  out.write_i32("data_type", find_data_type_v2(tensor));
  if (const auto problems = list_problems(affine); !problems.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("alt cannot hold tensor {}: {}", tensor.name, fmt::join(problems, "; ")));
  }
  if (affine.min > affine.max) {
    throw Error(ErrorKind::unsupported, fmt::format("alt cannot hold tensor {}: its min {} is above its max {}",
                                                    tensor.name, affine.min, affine.max));
  }
  const bool symmetric = affine.min == affine.max;
  out.write_f32(affine.delta);
  out.write_f32(symmetric ? 0 : affine.min);
  out.write_f32(symmetric ? 0 : affine.max);
  out.write_flag(affine.packed);
  return out;
}

using HintsByTensor = std::unordered_map<const Tensor*, Hints>;

HintsByTensor make_all_hints(const std::vector<const Tensor*>& tensors) {
  HintsByTensor hints;
  std::int32_t other_block = kFirstOtherBlock;
  for (const Tensor* tensor : tensors) {
    const AltRole role = find_alt_role(tensor->name);
    hints.emplace(tensor, make_hints(role, other_block));
    if (role.component == ComponentType::other) --other_block;
  }
  return hints;
}

// Returns the tensors in canonical order, with qint4 codes packed.
std::deque<Tensor> pack_tensors(const Model& model) {
  std::deque<Tensor> tensors;
  for (const Tensor* tensor : list_in_canonical_order(model)) tensors.push_back(make_packed_qint4_view(*tensor));
  return tensors;
}

std::vector<const Tensor*> list_pointers(const std::deque<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(tensors.size());
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

// Writes the canonical form. The constructor throws unsupported for a model that the form cannot hold. But write()
// checks the scales of codes, because only it reads them.
class CanonicalFile {
 public:
  explicit CanonicalFile(const Model& model)
      : sections_(model, kVersion2),
        packed_(pack_tensors(model)),
        section_(make_tensors_section(list_pointers(packed_), count_blocks(model))) {}
  CanonicalFile(const CanonicalFile&) = delete;  // section_ points into packed_: a copy would point into the original
  CanonicalFile& operator=(const CanonicalFile&) = delete;

  std::uint64_t count_bytes() const { return sections_.count_bytes(section_); }
  void write(Sink& sink, const Progress& progress) const { sections_.write(sink, &section_, progress); }

 private:
  static TensorsSection make_tensors_section(const std::vector<const Tensor*>& order, const BlockCounts& blocks) {
    return {order,
            [hints = make_all_hints(order)](const Tensor& tensor, const Affine& affine) {
              return make_tensor_header(tensor, hints.at(&tensor), affine);
            },
            &blocks};
  }

  FileWriter sections_;
  std::deque<Tensor> packed_;
  TensorsSection section_;
};

}  // namespace

void write_v2(const Model& model, Output& output, const WriteOptions& options) {
  if (is_for_alt_c(options)) return write_alt_c(model, output.main());
  require_holdable_config(model, 2);
  CanonicalFile(model).write(output.main(), options.progress);
}

FilePlan plan_v2(const Model& model, const WriteOptions& options) {
  FilePlan plan;
  if (is_for_alt_c(options)) {
    CountingSink sink;
    write_alt_c(model, sink);
    plan.bytes = sink.position();
    return plan;
  }
  require_holdable_config(model, 2);
  plan.bytes = CanonicalFile(model).count_bytes();
  for (const Tensor& tensor : model.tensors())
    plan.tensor_bytes.push_back(make_packed_qint4_view(tensor).require("data").blob->size());
  return plan;
}

// The following functions write ALT version 1, which has no scales, and no scores and types of tokens.

namespace {

// Returns true for the names of SiLU, which readers of version 1 assume, and for an empty name.
bool is_usual_activation(std::string_view name) {
  return name.empty() || name == Config{}.hidden_act || name == "swish";
}

std::int32_t find_data_type_v1(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) {
    throw Error(ErrorKind::unsupported,
                fmt::format("alt1 has no scales, so it cannot hold the quantized tensor {}", tensor.name))
        .with({.kind = Remedy::Kind::dtype, .value = "f32"});
  }
  const bool dense = tensor.layout == Layout::dense;
  const DType dtype = dense ? tensor.require("data").dtype : DType::unknown;
  if (dtype == DType::f32) return 0;
  if (dtype == DType::f16) return 1;
  if (dtype == DType::i8) return 2;
  refuse_tensor("alt1", tensor);
}

SectionWriter make_tensor_header_v1(const Tensor& tensor, const Affine&) {
  SectionWriter out(fmt::format("tensor {}", tensor.name));
  out.write_count("n_dims", tensor.shape.size());
  out.write_text_length("name", tensor.name);
  out.write_i32("data_type", find_data_type_v1(tensor));
  for (const std::uint64_t dimension : tensor.shape) out.write_count("dimension", dimension);
  out.write_text_bytes(tensor.name);
  return out;
}

// Prepares a file of version 1. The constructor throws unsupported for a model that the version cannot hold.
struct FileV1 {
  explicit FileV1(const Model& model)
      : section(list_in_canonical_order(model), make_tensor_header_v1, nullptr), sections(model, kVersion1) {
    // Version 1 has no hidden_act; its readers assume that of Config{}.
    if (const Family& family = find_family_or_llama(model); family.hidden_act != Config{}.hidden_act) {
      throw Error(ErrorKind::unsupported, fmt::format("alt1 cannot describe a {}", family.title))
          .with({.kind = Remedy::Kind::format, .value = "alt"});
    }
    if (model.config && !is_usual_activation(model.config->hidden_act)) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("alt1 cannot hold hidden_act \"{}\": its readers would compute another model",
                              model.config->hidden_act))
          .with({.kind = Remedy::Kind::format, .value = "alt"});
    }
  }

  TensorsSection section;
  FileWriter sections;
};

}  // namespace

void write_v1(const Model& model, Output& output, const WriteOptions& options) {
  require_holdable_config(model, 1);
  const FileV1 file(model);
  file.sections.write(output.main(), &file.section, options.progress);
}

FilePlan plan_v1(const Model& model, const WriteOptions&) {
  require_holdable_config(model, 1);
  const FileV1 file(model);
  FilePlan plan;
  plan.bytes = file.sections.count_bytes(file.section);
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

TensorsSection::TensorsSection(std::vector<const Tensor*> tensors, Header header, const BlockCounts* blocks)
    : tensors_(std::move(tensors)), header_(std::move(header)) {
  std::uint64_t dimensions = 0;
  for (const Tensor* tensor : tensors_) {
    const std::uint64_t header_bytes = header_(*tensor, Affine{}).fields().size();
    data_bytes_ += tensor->require("data").blob->size();
    bytes_ += header_bytes + tensor->require("data").blob->size();
    dimensions += tensor->shape.size();
  }
  counts_.write_i64(tensors_.size());
  counts_.write_i64(dimensions);
  if (blocks == nullptr) return;
  counts_.write_i32("block_count", blocks->blocks);
  counts_.write_i32("unique_count", blocks->unique);
}

std::uint64_t TensorsSection::count_bytes() const {
  return *checked_align(kHeaderBytes + counts_.fields().size() + bytes_, kAlignment);
}

void TensorsSection::write(Sink& sink, const Progress& progress) const {
  ByteWriter header;
  header.append_i64(get_section_info(Section::tensors).marker);
  header.append_u64(count_bytes());
  sink.write(header.bytes());
  sink.write(counts_.fields().bytes());
  Meter meter(progress, data_bytes_);
  const ReadAhead ahead(ReadAhead::list_blobs(
      tensors_, [](const Tensor* tensor) -> const Blob& { return *tensor->require("data").blob; }));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor* const tensor = tensors_[i];
    const Affine affine = tensor->layout.affine() != nullptr ? tensor->layout.affine()->get() : Affine{};
    sink.write(header_(*tensor, affine).fields().bytes());
    write_blob(ahead[i], sink, meter, tensor->name);
  }
  sink.pad_to(kAlignment);
}

// The following functions list the information that ALT files cannot hold, as sentences for the user.

namespace {

// Under this key, safetensors files name their framework ("pt"). The key does not describe the model, so it is not a
// loss.
constexpr std::string_view kFramework = "format";

void note_attributes(const Model& model, Losses& losses) {
  std::vector<std::string> names;
  for (const auto& [key, value] : model.attributes) {
    if (key != kFramework) names.push_back(key);
  }
  losses.note_names(names, "attribute");
  losses.note_if(!model.vocabulary && has_gguf_tokenizer(model.attributes), "the vocabulary in the attributes");
  names.clear();
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.attributes.empty()) names.push_back(tensor.name);
  }
  losses.note_names(names, "tensor's attributes");
}

// Notes the vocabulary's rules, chat template and other keys that are lost, because ALT has only tokens and ids.
void note_text_rules(const Vocabulary& vocabulary, const WrittenVocabulary& written, Losses& losses) {
  const Vocabulary usual;
  const Vocabulary& held = written.vocabulary;
  if (!written.renamed.empty()) losses.add_sentence(describe_repeated_tokens("alt", written.renamed));
  losses.note_if(held.kind != usual.kind,
                 fmt::format("the kind of the vocabulary ({}): its readers merge pairs by score, as {} does",
                             get_kind_name(held.kind), get_kind_name(usual.kind)));
  losses.note_if(
      !vocabulary.merges.empty(),
      fmt::format("the vocabulary's {} merges{}", vocabulary.merges.size(),
                  written.ranked ? ": its readers merge by score instead, so some words get other tokens" : ""));
  for (const std::string& step : written.lost_steps) losses.note(step);
  losses.note_if(held.add_dummy_prefix != usual.add_dummy_prefix,
                 "add_dummy_prefix (false): its readers put a space before a text");
  losses.note_if(vocabulary.remove_extra_whitespaces != usual.remove_extra_whitespaces,
                 "remove_extra_whitespaces (true): its readers keep extra white space");
  losses.note_if(vocabulary.normalizer != usual.normalizer, fmt::format("the normalizer ({})", vocabulary.normalizer));
  bool prepend_first = written.prepend_first;
  if (vocabulary.kind == VocabularyKind::sentencepiece_bpe ||
      vocabulary.kind == VocabularyKind::sentencepiece_unigram) {
    const NormalizerRules rules = read_normalizer_rules(vocabulary);
    prepend_first = rules.prepend_first;
    losses.note_if(has_space_rules(rules),
                   "the places of spaces in tokens: its readers expect U+2581 in front of words");
    losses.note_if(read_denormalizer_rules(vocabulary).has_value(), "the denormalizer, which changes decoded texts");
  }
  losses.note_if(prepend_first,
                 "the rule that puts a space before a text only if it has none: its readers put one before every text");
  losses.note_if(held.kind == VocabularyKind::pipeline,
                 "the steps of the tokenizer (normalizer, pre-tokenizer, post-processor, decoder and added tokens)");
  losses.note_if(
      held.kind != VocabularyKind::pipeline && find_special_around(vocabulary) != find_usual_special_around(held),
      fmt::format("the special tokens around a text: its readers add {}",
                  held.bos_id < 0 ? "none" : "BOS in front, and none at the end"));
  const auto* list = vocabulary.pipeline.get_if<Value::Array>("added_tokens");
  losses.note_if(held.kind != VocabularyKind::pipeline && list != nullptr && !list->empty(),
                 fmt::format("the vocabulary's {} added tokens: its readers do not look for them in a prompt",
                             list == nullptr ? 0 : list->size()));
  losses.note_if(vocabulary.chat_template != Value(), "the chat template");
  std::vector<std::string> keys;
  for (const auto& [key, value] : find_config_besides_tokens(vocabulary)) keys.push_back(key);
  losses.note_names(keys, "key", " of tokenizer_config.json");
  losses.note_if(vocabulary.files.find(kSpecialTokensMap) != nullptr, std::string(kSpecialTokensMap));
}

// Returns true for a key of config.json whose value the card has, too, so that the key is not a loss of its own.
bool is_on_card(const Model& model, std::string_view key) {
  const Value* value = model.config_json.find(key);
  if (value == nullptr) return false;
  return (key == "license" && *value == Value(model.card.license)) ||
         (key == "base_model" && *value == Value(model.card.base_model));
}

// Returns true for a key of config.json whose value is a special id of the written vocabulary, or null where it has
// none.
bool is_written_id(const Model& model, const SpecialIds& written, std::string_view key) {
  const std::int32_t* const id = key == "bos_token_id"   ? &written.bos_id
                                 : key == "eos_token_id" ? &written.eos_id
                                 : key == "pad_token_id" ? &written.pad_id
                                                         : nullptr;
  if (id == nullptr) return false;
  const Value expected = *id < 0 ? Value() : Value(std::int64_t{*id});
  const Value& value = *model.config_json.find(key);
  return value == expected || value == Value(Value::Array{expected});
}

void note_common_losses(const Model& model, Losses& losses) {
  note_attributes(model, losses);
  const WrittenVocabulary written = model.vocabulary ? make_written_vocabulary(model) : WrittenVocabulary();
  std::vector<std::string> keys = list_other_config_keys(model);
  std::erase_if(keys, [&](const std::string& key) {
    return is_on_card(model, key) || (model.vocabulary && is_written_id(model, written.vocabulary, key));
  });
  losses.note_names(keys, "key", " of config.json");
  if (!model.config && model.config_json.empty() && model.size() > 0)
    losses.add_sentence("the model has no configuration, so programs cannot run the file");
  losses.note_if(model.config && model.config->dropout != 0, "dropout");
  if (model.vocabulary) note_text_rules(*model.vocabulary, written, losses);
}

// Notes scores and types of tokens that differ from those that a reader of version 1 fills in.
void note_tokens(const Vocabulary& vocabulary, Losses& losses) {
  bool scores = false;
  bool types = false;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const auto number = static_cast<std::int32_t>(id);
    scores = scores || vocabulary.score(id) != static_cast<float>(-number);
    types = types || choose_token_type_by_id(vocabulary, id) != guess_type(vocabulary, vocabulary.text(id), number);
  }
  losses.note_if(scores, "the tokens' scores: its readers prefer earlier tokens");
  losses.note_if(types, "the tokens' types");
}

void note_parameters(const Model& model, Losses& losses) {
  const Config& config = *model.config;
  const Config usual;
  losses.note_if(config.hidden_act != usual.hidden_act, fmt::format("hidden_act ({})", config.hidden_act));
  losses.note_if(config.initializer_range != usual.initializer_range,
                 fmt::format("initializer_range ({})", config.initializer_range));
  const bool tied = model.size() > 0 && model.find(find_family_or_llama(model).output) == nullptr;
  losses.note_if(config.tie_word_embeddings != tied, "tie_word_embeddings");
  losses.note_if(model.vocabulary && model.vocabulary->max_length != config.max_position_embeddings,
                 "the vocabulary's max_length, which differs from max_position_embeddings");
}

std::vector<std::string> list_losses_alt_c(const Model& model) {
  Losses losses("alt.c's dialect");
  losses.note_if(model.size() > 0, fmt::format("tensors: {} are left out", model.size()));
  losses.note_if(model.vocabulary && model.vocabulary->max_length != 0, "the vocabulary's max_length");
  if (const auto names = list_empty_card_fields(model.card); !names.empty()) {
    losses.add_sentence(
        fmt::format("alt.c refuses empty texts, so \"unknown\" is written for {}", fmt::join(names, ", ")));
  }
  note_common_losses(model, losses);
  return losses.release_sentences();
}

}  // namespace

std::vector<std::string> list_losses_v2(const Model& model, const WriteOptions& options) {
  if (is_for_alt_c(options)) return list_losses_alt_c(model);
  Losses losses("alt");
  note_common_losses(model, losses);
  return losses.release_sentences();
}

std::vector<std::string> list_losses_v1(const Model& model, const WriteOptions&) {
  Losses losses("alt1");
  for (const std::string& field : list_lost_card_fields(model.card)) losses.note(field);
  if (model.config) note_parameters(model, losses);
  if (model.vocabulary) note_tokens(make_written_vocabulary(model).vocabulary, losses);
  note_common_losses(model, losses);
  return losses.release_sentences();
}

}  // namespace poise::alt
