// Converts a vocabulary to GGUF's form: the inverse of gguf/vocabulary.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/fields.hpp"

namespace poise {

struct GgufForm {
  std::optional<GgufTokenizer> tokenizer;  // std::nullopt: GGUF has no equivalent algorithm
  std::vector<std::string> losses;         // one sentence each
};

// Makes the form. SentencePiece's BPE becomes "llama"; so does BPE of tokenizer.json with bytes as <0x00>, with scores
// that rank tokens as its merges do. Byte-level BPE becomes "gpt2", with the name of an equivalent pre-tokenizer.
// `general_name` is explained at GgufTokenizer.
GgufForm make_gguf_form(const Vocabulary& vocabulary, const std::string& general_name = {});

// Converts a vocabulary of tokenizer.json with the form "llama" to SentencePiece's BPE, for formats of tokens and
// scores: without added tokens and special tokens around a text. std::nullopt for all others.
std::optional<Vocabulary> make_sentencepiece_form(const Vocabulary& vocabulary);

}  // namespace poise

namespace poise::gguf_forms {

// Converts a vocabulary to the form of one of GGUF's algorithms, which share this.
struct Forming {
  Forming(const Vocabulary& vocabulary, const std::string& general_name);

  void lose(std::string loss) { losses.push_back(std::move(loss)); }
  void set_model(std::string_view model) {
    gguf.model = model;
    gguf.pre = "default";
  }
  // Sets the tokens' texts, scores and types, the special ids and the chat template.
  void convert_tokens();
  // Names tokens without a text: llama.cpp needs one for each id.
  void name_unused_tokens();
  // Sets add_space_prefix. SentencePiece puts a space in front of each text and of each run between added tokens;
  // Metaspace does so unless there is a space already.
  void convert_prefix(const Fields& metaspace);
  void convert_special_tokens();

  // These report losses.
  void check_spaces();
  void check_decoder(const std::vector<std::string>& same);
  // Checks added tokens. llama.cpp finds tokens in a prompt by their types; by the name, or not at all, which of them
  // take white space.
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
// Forms vocabularies of tokenizer.json. Require: its model has this type.
std::string form_unigram(Forming& of);
std::string form_word_piece(Forming& of);

// Forms BPE of tokenizer.json, after its tokens are converted.
std::string form_gpt2(Forming& of, const Fields& model, const std::vector<Fields>& cuts);
std::string form_llama(Forming& of, const Fields& model, const std::vector<Fields>& cuts);

// Returns the steps, in order, of a part of tokenizer.json, which may be a Sequence with the list `list`.
std::vector<Fields> collect_steps(const Fields& pipeline, std::string_view key, std::string_view list);

// Returns the text of a step's pattern of this kind ("String", "Regex"); std::nullopt for another kind.
std::optional<std::string> find_pattern(const Fields& step, std::string_view kind);

// Describes a step of a decoder for check_decoder(): its type, and the fields that change texts.
std::string describe_step(std::string_view type, const std::vector<std::string>& fields);

}  // namespace poise::gguf_forms

namespace poise {

// llama.cpp finds tokens by their texts, and ends at a file where two have the same.

// Gives each token whose text an earlier one has an unused name, "[PAD17]"; returns their ids, ascending. llama.cpp
// itself names empty tokens: they stay.
std::vector<std::size_t> name_repeated_tokens(std::vector<std::string>& tokens);

// Returns the sentence about them. Requires: `ids` is not empty.
std::string describe_repeated_tokens(const std::vector<std::size_t>& ids);

}  // namespace poise
