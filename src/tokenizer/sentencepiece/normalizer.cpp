#include "tokenizer/sentencepiece/normalizer.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/merge.hpp"

namespace poise {
namespace {

constexpr const char* kType = "Precompiled";
constexpr const char* kCharsmap = "precompiled_charsmap";
constexpr const char* kNormalizer = "normalizer";
constexpr const char* kDenormalizer = "denormalizer";
constexpr const char* kEscape = "escape_whitespaces";
constexpr const char* kSuffix = "treat_whitespace_as_suffix";
constexpr const char* kScheme = "prepend_scheme";
constexpr const char* kFirst = "first";
constexpr const char* kPrefix = "add_dummy_prefix";
constexpr const char* kRemove = "remove_extra_whitespaces";

std::string read_charsmap(const Fields& normalizer) {
  if (const std::string type = normalizer.require_text("type"); type != kType) throw_unknown_type(normalizer, type);
  const auto rules = decode_base64(normalizer.require_text(kCharsmap));
  if (!rules) throw Error(ErrorKind::invalid_file, "precompiled_charsmap: expected base64");
  return *rules;
}

bool read_prepend_first(const Fields& pipeline) {
  const auto scheme = pipeline.read_text(kScheme);
  if (scheme && scheme != kFirst) pipeline.fail(kScheme, fmt::format("expected \"{}\"", kFirst));
  return scheme.has_value();
}

}  // namespace

NormalizerRules read_normalizer_rules(const Vocabulary& vocabulary) {
  const Fields pipeline(vocabulary.pipeline, "tokenizer");
  const auto normalizer = pipeline.find_map(kNormalizer);
  return {.charsmap = normalizer ? read_charsmap(*normalizer) : std::string(),
          .add_dummy_prefix = vocabulary.add_dummy_prefix,
          .remove_extra_whitespaces = vocabulary.remove_extra_whitespaces,
          .escape_whitespaces = pipeline.read_boolean(kEscape, true),
          .treat_whitespace_as_suffix = pipeline.read_boolean(kSuffix, false),
          .prepend_first = read_prepend_first(pipeline)};
}

std::optional<NormalizerRules> read_denormalizer_rules(const Vocabulary& vocabulary) {
  const auto rules = Fields(vocabulary.pipeline, "tokenizer").find_map(kDenormalizer);
  if (!rules) return std::nullopt;
  return NormalizerRules{.charsmap = read_charsmap(*rules),
                         .add_dummy_prefix = rules->read_boolean(kPrefix, true),
                         .remove_extra_whitespaces = rules->read_boolean(kRemove, true),
                         .escape_whitespaces = rules->read_boolean(kEscape, true)};
}

void set_normalizer(Vocabulary& vocabulary, const NormalizerRules& rules) {
  vocabulary.add_dummy_prefix = rules.add_dummy_prefix;
  vocabulary.remove_extra_whitespaces = rules.remove_extra_whitespaces;
  if (!rules.charsmap.empty())
    vocabulary.pipeline.set(kNormalizer, Attributes{{"type", kType}, {kCharsmap, encode_base64(rules.charsmap)}});
  if (!rules.escape_whitespaces) vocabulary.pipeline.set(kEscape, false);
  if (rules.treat_whitespace_as_suffix) vocabulary.pipeline.set(kSuffix, true);
  if (rules.prepend_first) set_prepend_first(vocabulary);
}

void set_prepend_first(Vocabulary& vocabulary) { vocabulary.pipeline.set(kScheme, kFirst); }

void set_denormalizer(Vocabulary& vocabulary, const NormalizerRules& rules) {
  vocabulary.pipeline.set(kDenormalizer, Attributes{{"type", kType},
                                                    {kCharsmap, encode_base64(rules.charsmap)},
                                                    {kPrefix, rules.add_dummy_prefix},
                                                    {kRemove, rules.remove_extra_whitespaces},
                                                    {kEscape, rules.escape_whitespaces}});
}

bool has_space_rules(const NormalizerRules& rules) {
  return !rules.escape_whitespaces || rules.treat_whitespace_as_suffix;
}

SentencePieceNormalizer::SentencePieceNormalizer(const NormalizerRules& rules, const PrefixTrie* kept)
    : charsmap_(rules.charsmap),
      rules_(rules),
      space_(rules.escape_whitespaces ? kSpaceSymbol : std::string_view(" ")),
      kept_(kept) {}

SentencePieceNormalizer::Chunk SentencePieceNormalizer::find_first_chunk(std::string_view text) const {
  if (const std::size_t length = kept_ == nullptr ? 0 : kept_->find_longest(text).length; length > 0)
    return {length, text.substr(0, length)};
  if (const auto match = charsmap_.find_longest(text)) return {match->length, match->replacement};
  const std::size_t length = measure_character(text);
  return length == 0 ? Chunk{1, kReplacementCharacter} : Chunk{length, text.substr(0, length)};
}

bool SentencePieceNormalizer::needs_added_space(std::string_view text, bool first, bool removed) const {
  if (!rules_.add_dummy_prefix || !rules_.prepend_first) return rules_.add_dummy_prefix;
  if (removed) return true;  // the added space replaces the removed ones
  const std::string_view start = find_first_chunk(text).text;
  return first && !start.starts_with(' ') && !start.starts_with(kSpaceSymbol);
}

std::string SentencePieceNormalizer::normalize(std::string_view text, bool first) const {
  std::string out;
  const std::size_t size = text.size();
  while (rules_.remove_extra_whitespaces && !text.empty()) {
    const Chunk chunk = find_first_chunk(text);
    if (chunk.text != " ") break;
    text.remove_prefix(chunk.length);
  }
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 4);
  const bool space = needs_added_space(text, first, text.size() < size);
  if (space && !rules_.treat_whitespace_as_suffix) out += space_;
  bool after_space = rules_.remove_extra_whitespaces;
  std::size_t chunks = 0;
  while (!text.empty()) {
    if (++chunks % 1024 == 0) EncodingStop::check();
    const Chunk chunk = find_first_chunk(text);
    append_chunk(chunk.text, after_space, out);
    text.remove_prefix(chunk.length);
  }
  while (rules_.remove_extra_whitespaces && out.ends_with(space_)) out.resize(out.size() - space_.size());
  if (space && rules_.treat_whitespace_as_suffix) out += space_;
  return out;
}

void SentencePieceNormalizer::append_chunk(std::string_view chunk, bool& after_space, std::string& out) const {
  while (after_space && chunk.starts_with(' ')) chunk.remove_prefix(1);
  if (chunk.empty()) return;
  for (const char byte : chunk) {
    if (byte == ' ') {
      out += space_;
    } else {
      out += byte;
    }
  }
  after_space = rules_.remove_extra_whitespaces && chunk.ends_with(' ');
}

}  // namespace poise
