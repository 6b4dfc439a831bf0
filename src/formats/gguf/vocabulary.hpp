// Reads and writes a vocabulary in GGUF's metadata: arrays of texts, scores and types, and ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "formats/gguf/header.hpp"
#include "formats/gguf/key_values.hpp"

namespace poise::gguf {

// The keys of a vocabulary begin with this.
inline constexpr std::string_view kTokenizer = "tokenizer.ggml.";
inline constexpr std::string_view kLongestKey = "poise.longest_sequence";  // the value counts tokens
// tokenizer.ggml.model has this value in a file without tokens. Some files have "no_vocab" instead.
inline constexpr std::string_view kNoTokenizer = "none";

// Returns the type that a token has after its vocabulary was written and read again.
TokenType find_type_after_reading(const Vocabulary& vocabulary, std::size_t id);

// Returns true for the keys that write_vocabulary() always derives from the vocabulary: no attribute replaces them.
bool is_vocabulary_key(std::string_view key);

// Appends the keys of a model's vocabulary to `out`, except those that exist. Returns the losses, one sentence each.
// `name` is general.name. `embeddings` is the number of rows of the embedding, because llama.cpp requires as many
// tokens; 0: unknown. Requires: the model has a vocabulary, and `out` has no key of is_vocabulary_key().
std::vector<std::string> write_vocabulary(const Model& model, const std::string& name, std::uint64_t embeddings,
                                          KeyValues& out);

// Holds the arrays of a vocabulary. They are read with the header, because as values they would take many times the
// memory.
class Tokens {
 public:
  // Reads the value of a key that has one of these arrays; returns false for another key. Throws invalid_file for a
  // value of another type, and unsupported for too many items.
  bool read(std::string_view key, MetadataValue& value, HeaderReader& header);

  // Makes a vocabulary, and removes its keys. Returns std::nullopt if there is none, or if tokenizer.ggml.model is not
  // "llama": append_unused_arrays() then appends its arrays. Warns of ids without a token, and of missing keys with a
  // default. Throws invalid_file if the number of scores or types is not the number of tokens.
  std::optional<Vocabulary> make_vocabulary(Entries& entries, std::vector<Finding>& warnings, const std::string& path);

  // Returns the ids that the last make_vocabulary() found, for any kind of vocabulary.
  const SpecialIds& special_ids() const { return ids_; }

  // Appends the arrays as values, unless make_vocabulary() used them.
  void append_unused_arrays(std::vector<Attributes::Entry>& entries);

 private:
  struct Texts {
    std::string arena;
    std::vector<std::uint32_t> ends;
    std::size_t size() const { return ends.size(); }
    std::string_view at(std::size_t i) const {
      return std::string_view(arena).substr(i == 0 ? 0 : ends[i - 1], ends[i] - (i == 0 ? 0 : ends[i - 1]));
    }
  };
  SpecialIds ids_;
  std::optional<Texts> tokens_;
  std::optional<Texts> merges_;
  std::optional<std::vector<float>> scores_;
  std::optional<std::vector<std::int32_t>> types_;
};

}  // namespace poise::gguf
