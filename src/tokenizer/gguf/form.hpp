// Converts a vocabulary to GGUF's form: the inverse of gguf/vocabulary.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // Of the losses, the steps of tokenizer.json, without the subject: "the normalizer NFC: texts that ...".
  std::vector<std::string> lost_steps = {};
  bool prepend_first = false;  // a step puts a space in front of a text only if it has none
};

// Converts a vocabulary. SentencePiece's BPE becomes "llama". BPE of tokenizer.json that has byte tokens like <0x00>
// becomes "llama", too, with scores that follow from its merges. Byte-level BPE becomes "gpt2", with the name of an
// equivalent pre-tokenizer. Unigram becomes "t5", and WordPiece "bert". GgufTokenizer explains `general_name`.
GgufForm make_gguf_form(const Vocabulary& vocabulary, const std::string& general_name = {});

struct SentencePieceForm {
  Vocabulary vocabulary;
  // These are as in GgufForm.
  std::vector<std::string> lost_steps;
  bool prepend_first = false;
};

// Converts a vocabulary of tokenizer.json whose form is "llama" to SentencePiece's BPE, for formats that hold only
// tokens and scores. Keeps all tokens, but drops the list "added_tokens" and the post-processor. Returns std::nullopt
// for other vocabularies.
std::optional<SentencePieceForm> make_sentencepiece_form(const Vocabulary& vocabulary);

}  // namespace poise

namespace poise::gguf_forms {

// Collects a vocabulary in GGUF's form, and the losses. The conversions to all of GGUF's algorithms use it.
struct FormBuilder {
  FormBuilder(const Vocabulary& vocabulary, const std::string& general_name);

  void add_loss(std::string loss) { losses.push_back(std::move(loss)); }
  // Adds the loss "gguf does not hold ..." of a step of tokenizer.json.
  void add_lost_step(std::string step) {
    add_loss("gguf does not hold " + step);
    lost_steps.push_back(std::move(step));
  }
  void set_model(std::string_view model) {
    gguf.model = model;
    gguf.pre = "default";
  }
  // Sets the tokens' texts, scores and types, the special ids and the chat template.
  void convert_tokens();
  // Gives the name "[PAD7]" to token 7 if it has no text, and so on, as llama.cpp's converter does.
  void name_unused_tokens();
  // Sets add_space_prefix. Adds losses where Metaspace differs from llama.cpp. llama.cpp puts a space in front of each
  // text, and of each run after an added token. Metaspace puts no space in front of another space; with the scheme
  // "first", it puts one only in front of the whole text.
  void convert_prefix(const Fields& metaspace);
  void convert_special_tokens();

  // These functions add losses. report_decoder() adds one unless the vocabulary's decoder has the steps `same`, in the
  // form of describe_step(): those of llama.cpp's decoder.
  void report_spaces();
  void report_decoder(const std::vector<std::string>& same);
  // Adds losses where llama.cpp finds other tokens in a prompt than the vocabulary: it finds tokens by their types, and
  // only those of a Phi-3 consume white space (consumes_space_in_gguf()).
  void report_added_tokens();

  const Vocabulary& vocabulary;
  Fields pipeline;  // the pipeline of tokenizer.json
  GgufTokenizer gguf;
  std::vector<std::string> losses;
  std::vector<std::string> lost_steps;  // as in GgufForm
  bool prepend_first = false;

 private:
  void report_space_in_runs();
  void report_second_space();
};

// Each function converts vocabularies of one algorithm. Returns why GGUF cannot hold the vocabulary, as the end of the
// sentence "gguf cannot hold a vocabulary ..."; empty if it can.
std::string convert_sentencepiece_bpe(FormBuilder& builder);
std::string convert_sentencepiece_unigram(FormBuilder& builder);
// These convert vocabularies of tokenizer.json. Requires: its model has the type in the function's name.
std::string convert_unigram(FormBuilder& builder);
std::string convert_word_piece(FormBuilder& builder);

// Each function converts BPE of tokenizer.json. `cuts` has the steps of its pre-tokenizer. Requires: convert_tokens()
// has been called.
std::string convert_to_gpt2(FormBuilder& builder, const Fields& model, const std::vector<Fields>& cuts);
std::string convert_to_llama(FormBuilder& builder, const Fields& model, const std::vector<Fields>& cuts);

// Returns the steps, in order, of the part `key` of tokenizer.json. A Sequence has its steps in the field `list`.
std::vector<Fields> collect_steps(const Fields& pipeline, std::string_view key, std::string_view list);

// Returns the text of a step's pattern of this kind ("String", "Regex"); std::nullopt for another kind.
std::optional<std::string> find_pattern(const Fields& step, std::string_view kind);

// Describes a step of a decoder for report_decoder(): its type, and the fields that change texts.
std::string describe_step(std::string_view type, const std::vector<std::string>& fields);

}  // namespace poise::gguf_forms

namespace poise {

// These functions rename and report repeated tokens, because programs find tokens by their texts. llama.cpp aborts if
// two tokens of a file have the same text.

// Gives an unused name, "[PAD17]", to each token whose text an earlier token has. Returns the ids of these tokens,
// ascending. Keeps all empty tokens, which llama.cpp names itself, or only the first one.
enum class EmptyTokens : std::uint8_t { keep_all, keep_first };
std::vector<std::size_t> rename_repeated_tokens(std::vector<std::string>& tokens,
                                                EmptyTokens empty = EmptyTokens::keep_all);

// Returns a sentence that reports the renamed tokens. `format` is its first word. Requires: `ids` is not empty.
std::string describe_repeated_tokens(std::string_view format, const std::vector<std::size_t>& ids);

}  // namespace poise
