// Converts a vocabulary to the form of one of GGUF's algorithms: what these share. Each has a file in this folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/fields.hpp"

namespace poise::gguf_forms {

struct Forming {
  Forming(const Vocabulary& vocabulary, const std::string& general_name);

  void lose(std::string loss) { losses.push_back(std::move(loss)); }
  // Takes the tokens' texts, scores and types, the special ids and the chat template.
  void take_tokens();
  // llama.cpp needs a text for each id.
  void name_unused_tokens();
  // SentencePiece puts a space in front of each text and of each run between added tokens; Metaspace does so unless
  // there is a space already.
  void take_prefix(const Fields& metaspace);
  void take_special_tokens();

  // These report losses.
  void check_spaces();
  void check_decoder(const std::vector<std::string>& same);
  // llama.cpp finds tokens in a prompt by their types; by the name, or not at all, which of them take white space.
  void check_added_tokens();

  const Vocabulary& vocabulary;
  Fields pipeline;  // of tokenizer.json
  GgufTokenizer gguf;
  std::vector<std::string> losses;

 private:
  void lose_first();
  void lose_prefix();
};

// Each returns why GGUF cannot hold the vocabulary, the end of "a vocabulary ..."; empty if it can.
std::string form_sentencepiece_bpe(Forming& of);
std::string form_sentencepiece_unigram(Forming& of);
// For tokenizer.json. Require: its model has this type.
std::string form_unigram(Forming& of);
std::string form_word_piece(Forming& of);

// For BPE of tokenizer.json, after its tokens are taken.
std::string form_gpt2(Forming& of, const Fields& model, const std::vector<Fields>& cuts);
std::string form_llama(Forming& of, const Fields& model, const std::vector<Fields>& cuts);

// The steps, in order, of a part of tokenizer.json, which may be a Sequence with the list `list`.
std::vector<Fields> steps_of(const Fields& pipeline, std::string_view key, std::string_view list);

// The text of a step's pattern of this kind ("String", "Regex"); nothing for another kind.
std::optional<std::string> pattern_of(const Fields& step, std::string_view kind);

// Steps of a decoder for check_decoder(): the type, and the fields that change texts.
std::string replace_step(std::string_view pattern, std::string_view content);
std::string strip_step(std::string_view content, std::uint64_t start, std::uint64_t stop);
std::string metaspace_step(std::string_view replacement, bool prefixed);
std::string word_piece_step(std::string_view prefix, bool cleanup);

}  // namespace poise::gguf_forms
