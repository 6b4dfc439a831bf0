#include "formats/alt/write_sections.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"
#include "family/families.hpp"
#include "formats/alt/sections.hpp"
#include "model/card.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::alt {

void SectionWriter::write_i32(std::string_view field, std::int64_t value) {
  if (value < INT32_MIN || value > INT32_MAX) refuse(field, fmt::format("{} does not fit the format's 32 bits", value));
  fields_.append_i32(static_cast<std::int32_t>(value));
}

void SectionWriter::write_count(std::string_view field, std::uint64_t value) {
  if (value > INT32_MAX) refuse(field, fmt::format("{} does not fit the format's 32 bits", value));
  fields_.append_i32(static_cast<std::int32_t>(value));
}

void SectionWriter::write_text_length(std::string_view field, std::string_view value) {
  if (value.size() > INT32_MAX)
    refuse(field, fmt::format("{} bytes of text do not fit the format's 32-bit length", value.size()));
  if (value.find('\0') != std::string_view::npos) refuse(field, "the text holds a NUL byte");
  if (!is_utf8(value)) refuse(field, "the text is not UTF-8");
  fields_.append_i32(static_cast<std::int32_t>(value.size()));
}

void SectionWriter::write_text(std::string_view field, std::string_view value) {
  write_text_length(field, value);
  write_text_bytes(value);
}

void SectionWriter::refuse(std::string_view field, std::string_view problem) const {
  throw Error(ErrorKind::unsupported, fmt::format("alt: {}: {}: {}", section_, field, problem));
}

// A file of version 2 begins with i64 start marker, i64 section_size, i32 version 2, i32 alignment, and ends with an
// i64 marker; one of version 1 begins and ends with an i32 marker. layout.hpp describes the sections.
//
// In alt.c's dialect, section_size counts only the fields: 8 bytes in the start, and in the tokenizer section all but
// the token ids.

namespace {

void write_value(SectionWriter& out, std::string_view name, const std::string& value) { out.write_text(name, value); }
void write_value(SectionWriter& out, std::string_view, bool value) { out.write_flag(value); }
void write_value(SectionWriter& out, std::string_view name, std::int64_t value) { out.write_i32(name, value); }
void write_value(SectionWriter& out, std::string_view, float value) { out.write_f32(value); }

template <auto Member>
void write_config_field(SectionWriter& out, std::string_view name, const ParameterFields& fields) {
  write_value(out, name, fields.config.*Member);
}

void write_context_length(SectionWriter& out, std::string_view name, const ParameterFields& fields) {
  const std::int64_t vocabulary_length = fields.model.vocabulary ? fields.model.vocabulary->max_length : 0;
  const std::int64_t positions = fields.model.config ? fields.config.max_position_embeddings : vocabulary_length;
  if (positions < 0)
    throw Error(ErrorKind::unsupported, fmt::format("alt1: {}: {}, expected 0 or more", name, positions));
  out.write_i32(name, positions);
}

constexpr ParameterField kHiddenAct = {"hidden_act", write_config_field<&Config::hidden_act>};
constexpr ParameterField kTied = {"tie_word_embeddings", write_config_field<&Config::tie_word_embeddings>};
constexpr ParameterField kHidden = {"hidden_size", write_config_field<&Config::hidden_size>};
constexpr ParameterField kIntermediate = {"intermediate_size", write_config_field<&Config::intermediate_size>};
constexpr ParameterField kPositions = {"max_position_embeddings", write_config_field<&Config::max_position_embeddings>};
constexpr ParameterField kHeads = {"num_attention_heads", write_config_field<&Config::num_attention_heads>};
constexpr ParameterField kLayers = {"num_hidden_layers", write_config_field<&Config::num_hidden_layers>};
constexpr ParameterField kKeyHeads = {"num_key_value_heads", write_config_field<&Config::num_key_value_heads>};
constexpr ParameterField kWindow = {"sliding_window", write_config_field<&Config::sliding_window>};
constexpr ParameterField kTheta = {"rope_theta", write_config_field<&Config::rope_theta>};
constexpr ParameterField kEpsilon = {"rms_norm_eps", write_config_field<&Config::rms_norm_eps>};
constexpr ParameterField kRange = {"initializer_range", write_config_field<&Config::initializer_range>};
constexpr ParameterField kHeadSize = {"head_size", write_config_field<&Config::head_dim>};
constexpr ParameterField kModelType = {"model_type",
                                       [](SectionWriter& out, std::string_view name, const ParameterFields& fields) {
                                         out.write_text(name, fields.model.card.model_type);
                                       }};
constexpr ParameterField kDataType = {"data_type",
                                      [](SectionWriter& out, std::string_view name, const ParameterFields& fields) {
                                        out.write_i32(name, find_prevailing_type(fields.model));
                                      }};
constexpr ParameterField kContext = {"context_length", write_context_length};

constexpr std::array kParametersV2 = {kHiddenAct, kTied,   kHidden, kIntermediate, kPositions, kHeads,   kLayers,
                                      kKeyHeads,  kWindow, kTheta,  kEpsilon,      kRange,     kHeadSize};
constexpr std::array kParametersAltC = {kHiddenAct, kTied,   kHidden,   kIntermediate, kPositions, kHeads, kLayers,
                                        kKeyHeads,  kWindow, kHeadSize, kEpsilon,      kTheta,     kRange};
constexpr std::array kParametersV1 = {kModelType, kHidden, kLayers,  kIntermediate, kHeads,    kKeyHeads,
                                      kWindow,    kTheta,  kEpsilon, kHeadSize,     kDataType, kContext};

constexpr TokenField kText = {[](SectionWriter& out, const TokenFields& token) {
  out.write_text(fmt::format("token {}", token.id), token.vocabulary.text(token.id));
}};
constexpr TokenField kScore = {
    [](SectionWriter& out, const TokenFields& token) { out.write_f32(check_score(token.vocabulary, token.id)); }};
constexpr TokenField kType = {[](SectionWriter& out, const TokenFields& token) {
  out.write_i32("token_type", encode_token_type(token.types, choose_token_type_by_id(token.vocabulary, token.id)));
}};
constexpr TokenField kId = {[](SectionWriter& out, const TokenFields& token) { out.write_count("id", token.id); }};

constexpr std::array kTokenV2 = {kText, kScore, kType};
constexpr std::array kTokenAltC = {kScore, kType, kId, kText};
constexpr std::array kTokenV1 = {kText};

SectionWriter make_general_section(const Card& card, const WrittenForm& form) {
  SectionWriter out("general");
  for (const CardField& field : list_card_fields()) {
    const std::string_view text = card.*field.text;
    out.write_text(field.name, text.empty() ? form.empty_text : text);
  }
  return out;
}

SectionWriter make_parameters_section(const Model& model, const WrittenForm& form) {
  const ParameterFields parameters{model, model.config ? *model.config : make_empty_config()};
  SectionWriter out("parameters");
  for (const ParameterField& field : form.parameters) field.write(out, field.name, parameters);
  if (form.order) require_order(out, parameters.config, *form.order);
  return out;
}

// Throws unsupported if a reader would find another numbering of the types than that of `form`.
void require_numbering(const Vocabulary& vocabulary, const WrittenForm& form) {
  const bool is_canonical = form.types == TypeNumbering::canonical;
  const Vocabulary as_canonical = change_token_types(vocabulary, [&](std::size_t id) {
    return decode_token_type(TypeNumbering::canonical,
                             encode_token_type(form.types, choose_token_type_by_id(vocabulary, id)));
  });
  const TokenRecord record = is_canonical ? TokenRecord::canonical : TokenRecord::alt_c;
  if (find_numbering(as_canonical, record).numbering == form.types) return;
  throw Error(
      ErrorKind::unsupported,
      fmt::format("alt: tokenizer: token_type: with the types of the token at unk_id and of <0x00>, readers would "
                  "assume the numbering of {} and read wrong types",
                  is_canonical ? "alt.c's dialect" : "the canonical form"));
}

SectionWriter make_tokenizer_section(const Model& model, const WrittenForm& form) {
  const Vocabulary vocabulary = model.vocabulary ? make_written_vocabulary(model).vocabulary : Vocabulary();
  if (form.version == 2) require_numbering(vocabulary, form);
  SectionWriter out("tokenizer");
  out.write_count("vocab_size", vocabulary.size());
  out.write_i32("bos_id", vocabulary.bos_id);
  out.write_i32("eos_id", vocabulary.eos_id);
  out.write_i32("pad_id", vocabulary.pad_id);
  out.write_i32("unk_id", vocabulary.unk_id);
  if (form.seq_len) out.write_i32("seq_len", vocabulary.max_length);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    for (const TokenField& field : form.token) field.write(out, {vocabulary, id, form.types});
  }
  return out;
}

void write_start(Sink& sink, const WrittenForm& form) {
  ByteWriter start;
  if (form.version == 1) {
    start.append_i32(static_cast<std::int32_t>(kStartAltc));
  } else {
    start.append_i64(kStartV2);
    start.append_u64(form.sizes == SizeRule::whole ? kAlignment : 2 * sizeof(std::int32_t));  // section_size
    start.append_i32(form.version);
    start.append_i32(static_cast<std::int32_t>(kAlignment));
  }
  sink.write(start.bytes());
  sink.pad_to(kAlignment);
}

void write_end(Sink& sink, const WrittenForm& form) {
  ByteWriter end;
  if (form.version == 1) {
    end.append_i32(static_cast<std::int32_t>(kEndMarker));
  } else {
    end.append_i64(kEndMarker);
  }
  sink.write(end.bytes());
}

// Writes a section. Under SizeRule::too_small, section_size leaves out `uncounted` bytes: those of the token ids.
void write_section(Sink& sink, Section section, const SectionWriter& fields, const WrittenForm& form,
                   std::uint64_t uncounted = 0) {
  const std::uint64_t bytes = fields.fields().size();
  ByteWriter header;
  header.append_i64(get_section_info(section).marker);
  header.append_u64(form.sizes == SizeRule::whole ? *checked_align(kHeaderBytes + bytes, kAlignment)
                                                  : bytes - uncounted);
  sink.write(header.bytes());
  sink.write(fields.fields().bytes());
  sink.pad_to(kAlignment);
}

}  // namespace

const WrittenForm kVersion2 = {.parameters = kParametersV2, .order = ParameterOrder::canonical, .token = kTokenV2};
const WrittenForm kVersion2AltC = {.empty_text = "unknown",
                                   .parameters = kParametersAltC,
                                   .order = ParameterOrder::alt_c,
                                   .seq_len = false,
                                   .token = kTokenAltC,
                                   .types = TypeNumbering::alt_c,
                                   .sizes = SizeRule::too_small};
const WrittenForm kVersion1 = {
    .version = 1, .general = false, .parameters = kParametersV1, .order = {}, .seq_len = false, .token = kTokenV1};

namespace {

// Takes missing ids from where runs take them: config.json, generation_config.json and the post-processor. BOS is the
// token that the vocabulary puts in front of texts, because ALT's readers put it there.
void add_missing_ids(const Model& model, Vocabulary& vocabulary) {
  if (vocabulary.bos_id < 0) {
    if (const auto before = find_special_around(*model.vocabulary).before; before.size() == 1)
      vocabulary.bos_id = before.front();
  }
  if (vocabulary.eos_id < 0) {
    if (const auto ends = find_end_tokens(model, -1, vocabulary.size()); !ends.empty())
      vocabulary.eos_id = ends.front();
  }
  if (vocabulary.pad_id < 0) {
    const auto* pad =
        find_family_keys(find_family_or_llama(model), model.config_json).get_if<std::uint64_t>("pad_token_id");
    if (pad != nullptr && *pad < vocabulary.size()) vocabulary.pad_id = static_cast<std::int32_t>(*pad);
  }
}

}  // namespace

WrittenVocabulary make_written_vocabulary(const Model& model) {
  WrittenVocabulary written;
  if (auto form = make_sentencepiece_form(*model.vocabulary)) {
    written = {std::move(form->vocabulary), true, std::move(form->lost_steps), form->prepend_first, {}};
  } else {
    written.vocabulary = *model.vocabulary;
  }
  Vocabulary& vocabulary = written.vocabulary;
  add_missing_ids(model, vocabulary);
  std::vector<std::string> texts;
  texts.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) texts.emplace_back(vocabulary.text(id));
  written.renamed = rename_repeated_tokens(texts, EmptyTokens::keep_first);
  if (written.renamed.empty()) return written;
  Vocabulary renamed(vocabulary.settings());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_new = std::ranges::binary_search(written.renamed, id);
    renamed.add(texts[id], vocabulary.score(id), is_new ? TokenType::unused : vocabulary.type(id));
  }
  vocabulary = std::move(renamed);
  return written;
}

FileWriter::FileWriter(const Model& model, const WrittenForm& form)
    : form_(form),
      general_(form.general ? std::optional(make_general_section(model.card, form)) : std::nullopt),
      parameters_(make_parameters_section(model, form)),
      tokenizer_(make_tokenizer_section(model, form)) {
  if (model.vocabulary) id_bytes_ = sizeof(std::int32_t) * model.vocabulary->size();
}

void FileWriter::write_before_tensors(Sink& sink) const {
  write_start(sink, form_);
  if (general_) write_section(sink, Section::general, *general_, form_);
  write_section(sink, Section::parameters, parameters_, form_);
  write_section(sink, Section::tokenizer, tokenizer_, form_, id_bytes_);
}

std::uint64_t FileWriter::count_bytes(const TensorsSection& tensors) const {
  CountingSink sink;
  write_before_tensors(sink);
  write_end(sink, form_);
  return sink.position() + tensors.count_bytes();
}

void FileWriter::write(Sink& sink, const TensorsSection* tensors, const Progress& progress) const {
  write_before_tensors(sink);
  if (tensors != nullptr) tensors->write(sink, progress);
  write_end(sink, form_);
}

namespace {

constexpr std::string_view kName = "alt.c";
constexpr std::size_t kMaxTokens = 32000;  // the limit of the C reader of alt.c

[[noreturn]] void refuse(std::string_view problem) {
  throw Error(ErrorKind::unsupported, fmt::format("dialect {}: {}", kName, problem));
}

void require_loadable_by_alt_c(const Model& model) {
  if (!model.config) refuse("the model has no configuration, which the dialect's reader needs");
  if (model.config->hidden_act.empty()) refuse("its reader refuses an empty hidden_act");
  if (!model.vocabulary) refuse("the model has no vocabulary, which the dialect's reader needs");
  const Vocabulary& vocabulary = *model.vocabulary;
  if (vocabulary.size() == 0 || vocabulary.size() > kMaxTokens)
    refuse(fmt::format("its reader takes 1 to {} tokens, the vocabulary has {}", kMaxTokens, vocabulary.size()));
  std::unordered_set<std::string_view> texts;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.text(id).empty()) refuse(fmt::format("its reader refuses empty texts, and token {} is empty", id));
    if (!texts.insert(vocabulary.text(id)).second)
      refuse(fmt::format("its reader refuses texts that appear twice, and token {} does", id));
  }
}

}  // namespace

bool is_for_alt_c(const WriteOptions& options) {
  if (!options.dialect) return false;
  if (*options.dialect == kName) return true;
  throw Error(ErrorKind::bad_argument, fmt::format("alt has no dialect \"{}\", only {}", *options.dialect, kName));
}

void write_alt_c(const Model& model, Sink& sink) {
  require_holdable_config(model, 2);
  require_loadable_by_alt_c(model);
  FileWriter(model, kVersion2AltC).write(sink, nullptr, {});
}

}  // namespace poise::alt
