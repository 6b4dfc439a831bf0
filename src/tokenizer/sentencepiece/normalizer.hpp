// SentencePiece's normalizer, and its denormalizer, which is another one after decoding.
//
// A vocabulary has add_dummy_prefix and remove_extra_whitespaces as fields, and the rest in its pipeline:
//
//   "normalizer"                  {"type": "Precompiled", "precompiled_charsmap": base64}: what is replaced
//   "escape_whitespaces"          false: tokens have spaces, not U+2581
//   "treat_whitespace_as_suffix"  true: the space that is added goes after the text
//   "prepend_scheme"              "first": the space goes in front of a text alone, not of runs after added tokens, and
//                                 not where there is one already (tokenizer.json's Metaspace; "legacy": false of
//                                 tokenizer_config.json)
//   "denormalizer"                as "normalizer", and the names of the flags, with "add_dummy_prefix" and
//                                 "remove_extra_whitespaces"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/pipeline/charsmap.hpp"
#include "tokenizer/tokens/prefix_trie.hpp"

namespace poise {

// U+2581: a space in SentencePiece's tokens.
inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";

// What a normalizer does. The defaults are SentencePiece's, but for the charsmap.
struct NormalizerRules {
  std::string charsmap;  // its bytes; empty: nothing is replaced
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool prepend_first = false;  // see "prepend_scheme"

  friend bool operator==(const NormalizerRules&, const NormalizerRules&) = default;
};

// Throw unsupported for a normalizer that is none of SentencePiece's, and invalid_file for what is no base64 or has the
// wrong type.
NormalizerRules normalizer_of(const Vocabulary& vocabulary);
std::optional<NormalizerRules> denormalizer_of(const Vocabulary& vocabulary);

// Keep no more than what differs from a vocabulary that has none of it.
void set_normalizer(Vocabulary& vocabulary, const NormalizerRules& rules);
void prepend_to_first(Vocabulary& vocabulary);  // "prepend_scheme"
// Requires: a charsmap that is not empty.
void set_denormalizer(Vocabulary& vocabulary, const NormalizerRules& rules);

// Does it anything that the fields of Vocabulary and the charsmap do not say?
bool has_space_rules(const NormalizerRules& rules);

class SentencePieceNormalizer {
 public:
  // `kept`: texts that stay as they are; null: none. Throws invalid_file for a charsmap that is none. Requires: `kept`
  // outlives this.
  SentencePieceNormalizer(const NormalizerRules& rules, const PrefixTrie* kept);

  bool replaces() const { return !charsmap_.empty(); }
  // A text, or a run of one, which may be its first.
  std::string normalize(std::string_view text, bool first = true) const;

 private:
  // What the text begins with, and what becomes of it.
  struct Chunk {
    std::size_t length;
    std::string_view text;
  };
  Chunk first_chunk(std::string_view text) const;
  // `removed`: were there superfluous spaces in front?
  bool puts_space(std::string_view text, bool first, bool removed) const;
  void append_chunk(std::string_view chunk, bool& after_space, std::string& out) const;

  CharsMap charsmap_;
  NormalizerRules rules_;
  std::string_view space_;  // what becomes of one
  const PrefixTrie* kept_;
};

}  // namespace poise
