// Every section_size counts the fields only, the tokenizer's without the token ids; the start marker says 8.
//
//   parameters  head_size, rms_norm_eps, rope_theta, initializer_range come last, in this order
//   tokenizer   no seq_len; per token: f32 score, i32 type (in alt.c's numbering of January 2025), i32 id, text
#include "formats/alt/write_alt_c.hpp"

#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/alt/dialect.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/section_writer.hpp"
#include "formats/alt/tokens.hpp"

namespace poise::alt {
namespace {

constexpr std::string_view kName = "alt.c";
constexpr std::string_view kUnknown = "unknown";
constexpr std::size_t kMaxTokens = 32000;  // of its C reader
constexpr std::size_t kIdBytes = sizeof(std::int32_t);

struct CardField {
  std::string_view name;
  std::string Card::*text;
};
constexpr std::array<CardField, 7> kCardFields = {{
    {"model_type", &Card::model_type},
    {"base_model", &Card::base_model},
    {"author", &Card::author},
    {"created_at", &Card::created_at},
    {"last_modified", &Card::last_modified},
    {"license", &Card::license},
    {"uuid", &Card::uuid},
}};

[[noreturn]] void refuse(std::string_view problem) { throw Error(ErrorKind::unsupported, fmt::format("dialect {}: {}", kName, problem)); }

void require_loadable(const Model& model) {
  if (!model.config) refuse("its reader needs a configuration, and the model has none");
  if (model.config->hidden_act.empty()) refuse("its reader refuses an empty hidden_act");
  if (!model.vocabulary) refuse("its reader needs a vocabulary, and the model has none");
  const Vocabulary& vocabulary = *model.vocabulary;
  if (vocabulary.size() == 0 || vocabulary.size() > kMaxTokens)
    refuse(fmt::format("its reader takes 1 to {} tokens, the vocabulary has {}", kMaxTokens, vocabulary.size()));
  std::unordered_set<std::string_view> texts;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.text(id).empty()) refuse(fmt::format("its reader refuses empty texts, and token {} is empty", id));
    if (!texts.insert(vocabulary.text(id)).second) refuse(fmt::format("its reader refuses texts that stand twice, and token {} does", id));
  }
}

SectionWriter general_section(const Card& card) {
  SectionWriter out("general");
  for (const CardField& field : kCardFields) {
    const std::string& text = card.*field.text;
    out.text(field.name, text.empty() ? kUnknown : std::string_view(text));
  }
  return out;
}

SectionWriter tokenizer_section(const Vocabulary& vocabulary) {
  SectionWriter out("tokenizer");
  out.count("vocab_size", vocabulary.size());
  out.i32("bos_id", vocabulary.bos_id);
  out.i32("eos_id", vocabulary.eos_id);
  out.i32("pad_id", vocabulary.pad_id);
  out.i32("unk_id", vocabulary.unk_id);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    out.f32(written_score(vocabulary, id));
    out.i32("type", type_code(TypeNumbering::alt_c, written_type(vocabulary, id)));
    out.count("id", id);
    out.text(fmt::format("token {}", id), vocabulary.text(id));
  }
  return out;
}

void write_start(Sink& sink) {
  ByteWriter start;
  start.i64(kStartV2);
  start.i64(2 * sizeof(std::int32_t));  // section_size
  start.i32(2);                         // magic_version
  start.i32(static_cast<std::int32_t>(kAlignment));
  sink.write(start.bytes());
  sink.pad_to(kAlignment);
}

}  // namespace

bool is_for_alt_c(const WriteOptions& options) {
  if (!options.dialect) return false;
  if (*options.dialect == kName) return true;
  throw Error(ErrorKind::bad_argument, fmt::format("alt has no dialect \"{}\"; there is: {}", *options.dialect, kName));
}

void write_alt_c(const Model& model, Sink& sink) {
  require_held_config(model);
  require_loadable(model);
  const SectionWriter general = general_section(model.card);
  const SectionWriter parameters = parameters_section_v2(*model.config, ParameterOrder::alt_c);
  const SectionWriter tokenizer = tokenizer_section(*model.vocabulary);
  write_start(sink);
  write_section(sink, Section::general, general, general.fields().size());
  write_section(sink, Section::parameters, parameters, parameters.fields().size());
  write_section(sink, Section::tokenizer, tokenizer, tokenizer.fields().size() - kIdBytes * model.vocabulary->size());
  ByteWriter end;
  end.i64(kEndMarker);
  sink.write(end.bytes());
}

std::vector<std::string> unknown_to_alt_c(const Card& card) {
  std::vector<std::string> names;
  for (const CardField& field : kCardFields) {
    if ((card.*field.text).empty()) names.emplace_back(field.name);
  }
  return names;
}

}  // namespace poise::alt
