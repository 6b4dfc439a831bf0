// A vocabulary in GGUF's metadata: arrays of texts, scores and types, and ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "formats/gguf/header.hpp"
#include "formats/gguf/key_values.hpp"
#include "formats/gguf/metadata.hpp"

namespace poise::gguf {

// The keys of vocabularies begin so.
inline constexpr std::string_view kTokenizer = "tokenizer.ggml.";

// The type that a token has when a file with the vocabulary is read again.
TokenType read_type(const Vocabulary& vocabulary, std::size_t id);

// Appends what GGUF says of a model's vocabulary, but for keys that are there; to null: nothing. Returns what of it a
// reader does not find again, one sentence each. `embeddings`: rows of the embedding, as many as llama.cpp wants
// tokens; 0: not known. Requires: the model has a vocabulary.
std::vector<std::string> write_vocabulary(const Model& model, std::uint64_t embeddings, KeyValues* out);

// The arrays, as the header is read: they would take many times their memory as values.
class Tokens {
 public:
  // False for another key. Throws invalid_file for an array of another kind.
  bool take(std::string_view key, MetadataValue& value, HeaderReader& header);

  // Nothing where there is none, or one of a kind that Poise does not read: then give_back() has the arrays. Takes the
  // keys that it understands. Warns of ids that have no token. Throws invalid_file where arrays do not fit each other.
  std::optional<Vocabulary> vocabulary(Metadata& metadata, std::vector<Finding>& warnings, const std::string& path);

  // Appends arrays that made no vocabulary as values.
  void give_back(std::vector<Attributes::Entry>& entries);

 private:
  struct Texts {
    std::string arena;
    std::vector<std::uint32_t> ends;
    std::size_t size() const { return ends.size(); }
    std::string_view at(std::size_t i) const {
      return std::string_view(arena).substr(i == 0 ? 0 : ends[i - 1], ends[i] - (i == 0 ? 0 : ends[i - 1]));
    }
  };
  std::optional<Texts> tokens_;
  std::optional<Texts> merges_;
  std::optional<std::vector<float>> scores_;
  std::optional<std::vector<std::int32_t>> types_;
};

}  // namespace poise::gguf
