#include "tokenizer/gguf/forms/forming.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bytes/short_text.hpp"
#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::gguf_forms {
namespace {

std::optional<std::int32_t> id_of(std::int32_t id) { return id < 0 ? std::nullopt : std::optional(id); }

// Where Metaspace puts U+2581 in front: "always", "first" (of a text), "never".
std::string prepend_scheme(const Fields& metaspace) {
  return metaspace.text("prepend_scheme", metaspace.boolean("add_prefix_space", true) ? "always" : "never");
}
bool prepends(const Fields& metaspace) { return prepend_scheme(metaspace) != "never"; }

// Appends the steps of a part, which may be a Sequence, in order.
void append_steps(const Fields& part, std::string_view list, std::vector<Fields>& steps) {
  if (part.text("type", "") != "Sequence") return steps.push_back(part);
  for (const Fields& step : part.list(list)) append_steps(step, list, steps);
}

// The steps of a decoder: types, and the fields that change texts.
std::vector<std::string> decoder_steps(const Fields& pipeline) {
  std::vector<std::string> steps;
  for (const Fields& step : steps_of(pipeline, "decoder", "decoders")) {
    std::string& text = steps.emplace_back(step.text("type", ""));
    if (text == "Replace") {
      text = replace_step(pattern_of(step, "String").value_or(""), step.text("content", ""));
    } else if (text == "Strip") {
      text = strip_step(step.text("content", " "), step.number("start", 0), step.number("stop", 0));
    } else if (text == "Metaspace") {
      text = metaspace_step(step.text("replacement", kSpaceSymbol), prepends(step));
    } else if (text == "WordPiece") {
      text = word_piece_step(step.text("prefix", "##"), step.boolean("cleanup", true));
    }
  }
  return steps;
}

}  // namespace

std::vector<Fields> steps_of(const Fields& pipeline, std::string_view key, std::string_view list) {
  std::vector<Fields> steps;
  if (const auto part = pipeline.map(key)) append_steps(*part, list, steps);
  return steps;
}

std::optional<std::string> pattern_of(const Fields& step, std::string_view kind) {
  const auto pattern = step.map("pattern");
  return pattern ? pattern->optional_text(kind) : std::nullopt;
}

std::string replace_step(std::string_view pattern, std::string_view content) {
  return fmt::format("Replace \"{}\" \"{}\"", pattern, content);
}
std::string strip_step(std::string_view content, std::uint64_t start, std::uint64_t stop) {
  return fmt::format("Strip \"{}\" {} {}", content, start, stop);
}
std::string metaspace_step(std::string_view replacement, bool prefixed) {
  return fmt::format("Metaspace \"{}\" {}", replacement, prefixed);
}
std::string word_piece_step(std::string_view prefix, bool cleanup) {
  return fmt::format("WordPiece \"{}\" {}", prefix, cleanup);
}

Forming::Forming(const Vocabulary& vocabulary_of, const std::string& general_name)
    : vocabulary(vocabulary_of), pipeline(vocabulary_of.pipeline, "") {
  gguf.general_name = general_name;
}

void Forming::take_tokens() {
  gguf.bos_token_id = id_of(vocabulary.bos_id);
  gguf.eos_token_id = id_of(vocabulary.eos_id);
  gguf.unknown_token_id = id_of(vocabulary.unk_id);
  gguf.padding_token_id = id_of(vocabulary.pad_id);
  gguf.chat_template = vocabulary.chat_template;
  gguf.tokenizer_config = vocabulary.tokenizer_config;
  gguf.files = vocabulary.files;
  gguf.tokens.reserve(vocabulary.size());
  gguf.scores.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    gguf.tokens.emplace_back(vocabulary.text(id));
    gguf.scores.push_back(vocabulary.score(id));
    gguf.token_type.push_back(token_type_number(vocabulary.type(id)));
  }
}

void Forming::name_unused_tokens() {
  for (std::size_t id = 0; id < gguf.tokens.size(); ++id) {
    if (gguf.tokens[id].empty()) gguf.tokens[id] = fmt::format("[PAD{}]", id);
  }
}

void Forming::take_prefix(const Fields& metaspace) {
  const std::string scheme = prepend_scheme(metaspace);
  gguf.add_space_prefix = scheme != "never";
  scheme == "first" ? lose_first() : lose_prefix();
}

void Forming::lose_first() {
  lose("llama.cpp puts a space in front of runs after added tokens, too");
  lose_prefix();
}
void Forming::lose_prefix() {
  if (gguf.add_space_prefix.value_or(true) && !gguf.remove_extra_whitespaces.value_or(false))
    lose("llama.cpp puts a space in front of texts that begin with one, too");
}

void Forming::take_special_tokens() {
  const SpecialAround around = special_around(vocabulary);
  const auto take = [&](const std::vector<TokenId>& tokens, std::optional<std::int32_t>& id, std::optional<bool>& flag,
                        std::string_view where) {
    flag = !tokens.empty();
    if (tokens.empty()) return;
    if (!id) id = tokens.front();
    if (tokens.size() == 1 && *id == tokens.front()) return;
    flag = false;
    lose(fmt::format("gguf does not hold the special tokens {} texts: {}", where, fmt::join(tokens, ", ")));
  };
  take(around.before, gguf.bos_token_id, gguf.add_bos_token, "in front of");
  take(around.after, gguf.eos_token_id, gguf.add_eos_token, "after");
}

void Forming::check_spaces() {
  const NormalizerRules rules = normalizer_of(vocabulary);
  if (!rules.escape_whitespaces)
    lose("gguf does not say that tokens have spaces instead of U+2581: texts get other tokens");
  if (rules.treat_whitespace_as_suffix)
    lose("gguf does not say that the space that is added goes behind a text: texts get other tokens");
  if (rules.prepend_first && rules.add_dummy_prefix) lose_first();
  if (denormalizer_of(vocabulary)) lose("gguf does not hold the vocabulary's denormalizer");
}

void Forming::check_decoder(const std::vector<std::string>& same) {
  if (decoder_steps(pipeline) == same) return;
  const auto decoder = pipeline.map("decoder");
  lose(fmt::format("gguf does not hold {}: tokens may become another text",
                   decoder ? "the decoder " + decoder->text("type", "") : "that there is no decoder"));
}

void Forming::check_added_tokens() {
  const auto is_found = [&](std::size_t id) {
    return gguf_finds(numbered_token_type(static_cast<std::uint64_t>(gguf.token_type[id])));
  };
  const bool normalizes = vocabulary.kind == VocabularyKind::pipeline && pipeline.map("normalizer");
  std::vector<bool> is_listed(vocabulary.size());
  std::vector<std::string_view> more;
  std::vector<std::string_view> fewer;
  std::size_t others = 0;
  const std::vector<AddedToken> added = read_added_tokens(pipeline, vocabulary.size());
  for (const AddedToken& token : added) {
    if (token.content.empty()) continue;
    const auto id = static_cast<std::size_t>(token.id);
    is_listed[id] = true;
    if (!is_found(id) || token.content != vocabulary.text(id)) {
      fewer.push_back(token.content);
    } else if (token.lstrip || token.single_word || (token.normalized && normalizes) ||
               token.rstrip != gguf_takes_space(token.content, gguf.general_name)) {
      ++others;
    }
  }
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (!is_listed[id] && is_found(id) && !vocabulary.text(id).empty()) more.push_back(vocabulary.text(id));
  }
  if (!more.empty()) {
    lose(fmt::format("llama.cpp finds the texts of {} special tokens in a prompt, which the vocabulary does not: {}",
                     more.size(), listed(more)));
  }
  if (!fewer.empty())
    lose(fmt::format("llama.cpp does not find the texts of {} added tokens in a prompt: {}", fewer.size(),
                     listed(fewer)));
  if (others > 0)
    lose(fmt::format(
        "gguf does not say of added tokens whether they take white space or stand for whole words: {} differ", others));
}

}  // namespace poise::gguf_forms
