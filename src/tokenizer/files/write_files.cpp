#include "tokenizer/files/files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "tokenizer/gguf/form.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/model.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/kept_files.hpp"

namespace poise {
namespace {

constexpr std::string_view kAddedTokens = "added_tokens";

class TokenizerFilesWriter {
 public:
  explicit TokenizerFilesWriter(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  TokenizerFiles write() {
    switch (vocabulary_.kind) {
      case VocabularyKind::sentencepiece_bpe:
        write_sentencepiece_model();
        // tokenizer.json cannot hold a denormalizer or SentencePiece's rules of spaces. It applies a charsmap to whole
        // graphemes, unlike SentencePiece.
        if (vocabulary_.normalizer == Vocabulary().normalizer && !has_space_rules(read_normalizer_rules(vocabulary_)) &&
            !read_denormalizer_rules(vocabulary_)) {
          write_json(convert_to_pipeline());
        }
        break;
      case VocabularyKind::sentencepiece_unigram: write_sentencepiece_model(); break;
      case VocabularyKind::pipeline: write_json(vocabulary_); break;
      case VocabularyKind::byte_pair:
        add_loss("a Hugging Face directory cannot hold a vocabulary of Tiny Llama's kind: it is left out");
        break;
    }
    if (!result_.files.empty())
      std::ranges::move(make_config_and_kept_files(vocabulary_, make_tokenizer_config(vocabulary_)),
                        std::back_inserter(result_.files));
    return std::move(result_);
  }

 private:
  void add_loss(std::string loss) { result_.losses.push_back(std::move(loss)); }

  // Writes tokenizer.model. Reads it back to check that it is valid, and to find special ids and types that it loses.
  void write_sentencepiece_model() {
    if (vocabulary_.normalizer != Vocabulary().normalizer && read_normalizer_rules(vocabulary_).charsmap.empty())
      add_loss(fmt::format("the tokenizer is written without the normalizer {}", vocabulary_.normalizer));
    std::string bytes = format_sentencepiece(vocabulary_);
    Vocabulary reread;
    try {
      const auto all = std::as_bytes(std::span(bytes));
      reread = read_sentencepiece(*Source::from_memory({all.begin(), all.end()}, "tokenizer.model"));
    } catch (const Error& error) {
      return add_loss(fmt::format("tokenizer.model cannot be written for the vocabulary: {}", error.message()));
    }
    bool types = reread.bos_id == vocabulary_.bos_id && reread.eos_id == vocabulary_.eos_id &&
                 reread.pad_id == vocabulary_.pad_id;
    for (std::size_t id = 0; id < reread.size() && types; ++id) types = reread.type(id) == vocabulary_.type(id);
    if (!types)
      add_loss(
          "tokenizer.model names one BOS, EOS and padding token each: other tokens of these types become control "
          "tokens, or take that place");
    const auto is_none_or = [](const std::vector<TokenId>& tokens, TokenId id) {
      return tokens.empty() || tokens == std::vector{id};
    };
    const SpecialAround around = find_special_around(vocabulary_);
    if (!is_none_or(around.before, vocabulary_.bos_id) || !is_none_or(around.after, vocabulary_.eos_id)) {
      add_loss("tokenizer_config.json names one BOS and one EOS: other special tokens around texts are lost");
    }
    result_.files.push_back({"tokenizer.model", std::move(bytes)});
  }

  // Returns steps that remove white space at the end of a text, and shorten other runs of spaces to one space.
  static Attributes make_space_removal() {
    return {
        {"type", "Sequence"},
        {"normalizers",
         Value::Array{Attributes{{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
                      Attributes{{"type", "Replace"}, {"pattern", Attributes{{"Regex", " {2,}"}}}, {"content", " "}}}}};
  }

  // Returns the vocabulary as a pipeline, with SentencePiece's algorithm as steps of tokenizer.json.
  Vocabulary convert_to_pipeline() {
    Vocabulary pipeline = make_vocabulary(*make_gguf_form(vocabulary_).tokenizer);
    std::vector<std::size_t> renamed;
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      if (pipeline.text(id) != vocabulary_.text(id)) renamed.push_back(id);
    }
    if (!renamed.empty()) add_loss(describe_repeated_tokens("tokenizer.json", renamed));
    if (const Value* added = vocabulary_.pipeline.find(kAddedTokens))
      pipeline.pipeline.set(std::string(kAddedTokens), *added);
    if (const NormalizerRules rules = read_normalizer_rules(vocabulary_);
        rules.prepend_first && rules.add_dummy_prefix) {
      pipeline.pipeline.set("normalizer", rules.remove_extra_whitespaces ? Value(make_space_removal()) : Value());
      pipeline.pipeline.set(
          "pre_tokenizer",
          Attributes{
              {"type", "Metaspace"}, {"replacement", kSpaceSymbol}, {"prepend_scheme", "first"}, {"split", false}});
    }
    return pipeline;
  }

  void write_json(const Vocabulary& vocabulary) {
    std::vector<std::string> losses;
    try {
      result_.files.push_back({"tokenizer.json", format_tokenizer_json(vocabulary, losses)});
      result_.losses.insert(result_.losses.end(), losses.begin(), losses.end());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      add_loss(fmt::format("tokenizer.json cannot be written for the vocabulary: {}", error.message()));
    }
  }

  const Vocabulary& vocabulary_;
  TokenizerFiles result_;
};

}  // namespace

TokenizerFiles make_tokenizer_files(const Vocabulary& vocabulary) { return TokenizerFilesWriter(vocabulary).write(); }

}  // namespace poise
