// SentencePiece's normalizer changes texts before encoding; its denormalizer, if there is one, after decoding.
//
// A vocabulary has add_dummy_prefix and remove_extra_whitespaces as fields, and the rest in its pipeline:
//
//   "normalizer"                  {"type": "Precompiled", "precompiled_charsmap": base64}: the replacements
//   "escape_whitespaces"          false: tokens have spaces, not U+2581
//   "treat_whitespace_as_suffix"  true: the added space goes after the text
//   "prepend_scheme"              "first": the space goes only in front of a text, not of runs after added tokens, and
//                                 not where there is one already (tokenizer.json's Metaspace; "legacy": false of
//                                 tokenizer_config.json)
//   "denormalizer"                as "normalizer", with "add_dummy_prefix", "remove_extra_whitespaces" and
//                                 "escape_whitespaces" inside
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/model.hpp>

#include "tokenizer/pipeline/charsmap.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

// Holds the rules of a normalizer. The defaults are SentencePiece's, except for the charsmap.
struct NormalizerRules {
  std::string charsmap;  // the bytes of the charsmap; empty: no replacements
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool prepend_first = false;  // see "prepend_scheme"

  friend bool operator==(const NormalizerRules&, const NormalizerRules&) = default;
};

// These functions return the rules of the vocabulary's normalizer and denormalizer; std::nullopt: it has no
// denormalizer. They throw unsupported if the type is not "Precompiled", and invalid_file for invalid base64 and wrong
// types of fields.
NormalizerRules read_normalizer_rules(const Vocabulary& vocabulary);
std::optional<NormalizerRules> read_denormalizer_rules(const Vocabulary& vocabulary);

// Each function stores rules in a vocabulary. set_normalizer() adds only those keys that differ from the defaults.
void set_normalizer(Vocabulary& vocabulary, const NormalizerRules& rules);
void set_prepend_first(Vocabulary& vocabulary);  // "prepend_scheme"
// Requires: a charsmap that is not empty.
void set_denormalizer(Vocabulary& vocabulary, const NormalizerRules& rules);

// Returns true when tokens contain spaces instead of U+2581, or the added space goes after the text.
bool has_space_rules(const NormalizerRules& rules);

class SentencePieceNormalizer {
 public:
  // `kept` has texts that stay as they are, or is null. Throws invalid_file for an invalid charsmap. Requires: `kept`
  // outlives this.
  SentencePieceNormalizer(const NormalizerRules& rules, const PrefixTrie* kept);

  bool has_replacements() const { return !charsmap_.empty(); }
  // Normalizes a text, or a run of it; `first` is true for the first run.
  std::string normalize(std::string_view text, bool first = true) const;

 private:
  // Holds a prefix of the text, and its replacement.
  struct Chunk {
    std::size_t length;
    std::string_view text;
  };
  Chunk find_first_chunk(std::string_view text) const;
  // Returns true if a space is added to the text. `removed` is true if spaces at its front have been removed.
  bool needs_added_space(std::string_view text, bool first, bool removed) const;
  void append_chunk(std::string_view chunk, bool& after_space, std::string& out) const;

  CharsMap charsmap_;
  NormalizerRules rules_;
  std::string_view space_;  // the replacement of a space
  const PrefixTrie* kept_;
};

}  // namespace poise
