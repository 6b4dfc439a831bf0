// Model: the result of every reader and the input of every writer.
//
//   const poise::Model model = poise::open("model.alt");
//   for (const poise::Tensor& tensor : model.tensors()) std::cout << tensor.name << "\n";
//
// A Model is small: names, shapes and blobs, which read their bytes on demand. A Model from open() has a valid
// structure; verify() in <poise/verify.hpp> checks what needs a pass over the data (digests, indices, finite values). A
// const Model is safe to read from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/digest.hpp>
#include <poise/finding.hpp>
#include <poise/source.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// These are internal indices.
class TextTable;
class TokenTexts;

// Holds the model's family, author, dates and license. An empty text means unknown.
struct Card {
  std::string model_type;  // "mistral", "llama", ...: the family, which determines how the model computes
  std::string base_model;  // "mistralai/Mistral-7B-v0.1"
  std::string author;
  std::string created_at;     // YYYY-MM-DD
  std::string last_modified;  // YYYY-MM-DD
  std::string license;
  std::string uuid;

  friend bool operator==(const Card&, const Card&) = default;
};

// Holds hyperparameters, named as in a Hugging Face config.json.
struct Config {
  std::string hidden_act = "silu";
  bool tie_word_embeddings = false;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t max_position_embeddings = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;      // rows of the embedding; 0 if the format does not store it
  std::int64_t sliding_window = 0;  // positions; 0 = none
  float rope_theta = 10000.0F;
  float rms_norm_eps = 1e-5F;
  float initializer_range = 0.02F;
  float dropout = 0.0F;  // Tiny Llama only; not used at inference

  friend bool operator==(const Config&, const Config&) = default;
};

// Names the role of a token. The attribute poise.vocabulary (docs/formats/ztensor.md) and POISE_TOKEN_... of <poise.h>
// have the same numbers.
enum class TokenType : std::uint8_t {
  normal = 0,
  byte = 1,
  control = 2,
  unknown = 3,
  unused = 4,
  bos = 5,
  eos = 6,
  pad = 7,
  user_defined = 8
};

// Returns "normal", "byte", ...
std::string_view to_string(TokenType type);

// Names the algorithm that turns text into tokens.
enum class VocabularyKind : std::uint8_t {
  sentencepiece_bpe,      // merges by score over characters
  sentencepiece_unigram,  // the split into tokens with the largest sum of scores
  byte_pair,              // Tiny Llama: merges by rank over bytes, within words
  pipeline,               // the steps of a tokenizer.json: VocabularySettings::pipeline
};

// Lists the pairs of texts that merge, by rank. One arena holds the two texts of a pair next to each other.
class MergeList {
 public:
  // Holds the left and the right text. Valid until the next pair is added.
  using value_type = std::pair<std::string_view, std::string_view>;

  class const_iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = MergeList::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;

    const_iterator() = default;
    const_iterator(const MergeList& list, std::size_t rank) : list_(&list), rank_(rank) {}
    value_type operator*() const { return (*list_)[rank_]; }
    const_iterator& operator++() {
      ++rank_;
      return *this;
    }
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++rank_;
      return before;
    }
    friend bool operator==(const const_iterator&, const const_iterator&) = default;

   private:
    const MergeList* list_ = nullptr;
    std::size_t rank_ = 0;
  };
  using iterator = const_iterator;

  MergeList() = default;
  MergeList(std::initializer_list<value_type> pairs);

  // Reserves space for that many pairs, with that many bytes of text in all.
  void reserve(std::size_t merges, std::size_t bytes);
  // Appends a pair, whose rank is the old size(). Throws unsupported beyond 4 GiB of text.
  void emplace_back(std::string_view left, std::string_view right);

  bool empty() const { return ends_.empty(); }
  std::size_t size() const { return ends_.size(); }
  // Requires: rank < size().
  value_type operator[](std::size_t rank) const {
    const std::string_view text = joined(rank);
    const std::size_t left = ends_[rank].left - find_begin(rank);
    return {text.substr(0, left), text.substr(left)};
  }
  // Returns the left and the right text as one. Requires: rank < size().
  std::string_view joined(std::size_t rank) const {
    return std::string_view(arena_).substr(find_begin(rank), ends_[rank].right - find_begin(rank));
  }
  const_iterator begin() const { return {*this, 0}; }
  const_iterator end() const { return {*this, size()}; }

  friend bool operator==(const MergeList&, const MergeList&) = default;

 private:
  struct Ends {
    std::uint32_t left;
    std::uint32_t right;
    friend bool operator==(const Ends&, const Ends&) = default;
  };
  std::size_t find_begin(std::size_t rank) const { return rank == 0 ? 0 : ends_[rank - 1].right; }

  std::vector<Ends> ends_;  // ends of texts in the arena; each pair begins where the one before ends
  std::string arena_;
};

// Holds the ids of special tokens. -1: none.
struct SpecialIds {
  std::int32_t bos_id = -1;
  std::int32_t eos_id = -1;
  std::int32_t pad_id = -1;
  std::int32_t unk_id = -1;

  friend bool operator==(const SpecialIds&, const SpecialIds&) = default;
};

// Holds all of a vocabulary except its tokens.
struct VocabularySettings : SpecialIds {
  VocabularyKind kind = VocabularyKind::sentencepiece_bpe;
  std::int32_t max_length = 0;  // the longest sequence, in tokens; 0: unknown

  // The settings of SentencePiece's normalizer. ALT cannot hold them; its readers assume these defaults.
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = false;
  std::string normalizer = "identity";

  // VocabularyKind::byte_pair and pipeline: pairs of texts, in rank order.
  MergeList merges;

  // VocabularyKind::pipeline: all of tokenizer.json except tokens and merges (docs/tokenizers.md): "normalizer",
  // "pre_tokenizer", "model", "post_processor", "decoder", "added_tokens" and other keys. For SentencePiece:
  // "normalizer", "added_tokens".
  Attributes pipeline;
  // The chat template: a text, or a list of texts with names, as in tokenizer_config.json. Null: none.
  Value chat_template;
  // The other keys of tokenizer_config.json, in order, if the vocabulary was read with one. Tokens and fields above
  // take precedence over them.
  Attributes tokenizer_config;
  // Texts of other files as they were read, by their names in a Hugging Face directory: special_tokens_map.json,
  // chat_template.jinja, ... Poise writes those that still agree with tokens and fields above.
  Attributes files;

  const SpecialIds& special_ids() const { return *this; }
  SpecialIds& special_ids() { return *this; }

  friend bool operator==(const VocabularySettings&, const VocabularySettings&) = default;
};

// Holds tokens by id, with settings. One arena holds all texts, which saves an allocation for each token.
class Vocabulary : public VocabularySettings {
 public:
  Vocabulary() = default;
  // Begins without tokens.
  explicit Vocabulary(VocabularySettings settings) : VocabularySettings(std::move(settings)) {}

  const VocabularySettings& settings() const { return *this; }

  // Reserves space for that many tokens, with that many bytes of text in all.
  void reserve(std::size_t tokens, std::size_t bytes);
  // Appends a token, whose id is the old size(). Throws unsupported beyond 500,000 tokens or 4 GiB of text.
  void add(std::string_view text, float score, TokenType type);

  std::size_t size() const { return tokens_.size(); }
  // Requires: id < size().
  std::string_view text(std::size_t id) const { return {arena_.data() + tokens_[id].begin, tokens_[id].length}; }
  float score(std::size_t id) const { return tokens_[id].score; }
  TokenType type(std::size_t id) const { return tokens_[id].type; }

  friend bool operator==(const Vocabulary&, const Vocabulary&) = default;

 private:
  // Copies share this internal index. Adding a token drops it, since the index follows from the tokens.
  friend class TokenTexts;
  struct Index {
    std::shared_ptr<const TokenTexts> texts;
    friend bool operator==(const Index&, const Index&) { return true; }
  };
  struct Token {
    std::uint32_t begin;
    std::uint32_t length;
    float score;
    TokenType type;
    friend bool operator==(const Token&, const Token&) = default;
  };
  std::vector<Token> tokens_;
  std::string arena_;
  Index index_;
};

// Holds the digest that a model's main file gives for another file.
struct FileDigest {
  std::string path;  // the name of that file's Source
  std::string what;  // "shard 00001"
  Digest digest;
};

// Holds a file of a directory, unchanged.
struct DirectoryFile {
  std::string name;
  SourcePtr source;
};

// Describes the files that a model was read from.
struct Origin {
  std::filesystem::path path;
  std::string format;                        // "alt-v2", "safetensors", "huggingface", ...
  std::uint64_t size = 0;                    // bytes of all files
  std::vector<std::filesystem::path> files;  // every file that was opened
  std::string recipe = {};  // the recipe that chose the tensors' types, if a GGUF file names one: "q4_k_m"
  std::vector<FileDigest> file_digests = {};  // the files that have a digest of the whole file
  // The types of attributes that their values do not determine, by key: "u8", "[i16]". The writer of the same format
  // keeps them.
  std::map<std::string, std::string> attribute_types = {};
  // For a directory: the files of its tokenizer, generation_config.json, and README.md. The writer of directories
  // copies all but README.md, if the model still agrees with them.
  std::vector<DirectoryFile> other_files = {};
};

// Holds all of a model except its tensors.
struct ModelHeader {
  Origin origin;
  Card card;
  // The hyperparameters. std::nullopt if the model has none, and for most models of an unknown family.
  std::optional<Config> config;
  // The whole config.json, in order, if there was one. `config` takes precedence.
  Attributes config_json;
  std::optional<Vocabulary> vocabulary;
  Attributes attributes;
  std::vector<Finding> warnings;  // findings that did not keep the reader from reading the model
};

class Model : public ModelHeader {
 public:
  Model() = default;
  // Begins without tensors.
  explicit Model(ModelHeader header) : ModelHeader(std::move(header)) {}
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  const ModelHeader& header() const { return *this; }

  // Appends a tensor. Throws invalid_file when the name is taken, and unsupported beyond 2,000,000 tensors, 100,000
  // parts, 4,000,000 parts in all, or a rank of 64.
  const Tensor& add(Tensor tensor);

  // Reserves space for that many tensors.
  void reserve(std::size_t tensors);

  // Reorders the tensors: the tensor at index order[i] moves to index i. Requires: `order` is a permutation.
  void reorder(const std::vector<std::uint32_t>& order);

  // Returns the tensors in file order.
  const std::deque<Tensor>& tensors() const { return tensors_; }
  std::size_t size() const { return tensors_.size(); }

  // Returns the tensor of that name; null if there is none. Takes O(1).
  const Tensor* find(std::string_view name) const;
  // Returns the tensors that have this name in the file, and another one in the model. Takes O(size()).
  std::vector<const Tensor*> find_in_file(std::string_view file_name) const;

 private:
  std::deque<Tensor> tensors_;  // a deque, so that add() does not move tensors
  std::size_t parts_ = 0;
  std::shared_ptr<TextTable> by_name_;  // null: no tensors. std::unique_ptr would need a complete type
};

// Returns the hyperparameters in config.json's terms: {"model_type": "mistral", "hidden_size": 4096, ...}.
Attributes config_to_attributes(const Config& config, const std::string& model_type);
// Returns the complete configuration of a model: config.json with all its keys, and the hyperparameters of `config`,
// which take precedence. Without a model_type, leaves out hyperparameters that config.json leaves out. Empty if the
// model has no configuration.
Attributes whole_config(const Model& model);
// Returns all fields of a card by their names, empty ones, too.
Attributes card_to_attributes(const Card& card);

}  // namespace poise
