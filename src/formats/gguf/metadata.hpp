// Reads a GGUF file's metadata and converts it to card, configuration and vocabulary. Writes the keys "general.*".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "formats/format.hpp"
#include "formats/gguf/architectures.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/hyperparameters.hpp"
#include "formats/gguf/key_values.hpp"
#include "formats/gguf/vocabulary.hpp"

namespace poise::gguf {

// The value of kConfigKey is JSON text: the keys of config.json that have no keys in GGUF, or all keys if the model's
// architecture is unknown.
inline constexpr std::string_view kConfigKey = "poise.config";
inline constexpr std::string_view kCreatedKey = "poise.created_at";
inline constexpr std::string_view kModifiedKey = "poise.last_modified";

// Holds the number of a file in a split model, counted from 0, and how many files and tensors the model has.
struct Split {
  std::uint64_t number = 0;
  std::uint64_t count = 0;    // 0: the file is whole
  std::uint64_t tensors = 0;  // tensors in all files; 0: unknown
};

// Returns true for a model that was read from a GGUF file. The keys of its attributes are llama.cpp's or another
// program's.
inline bool is_from_gguf(const Model& model) { return model.origin.format.starts_with("gguf"); }

class Metadata {
 public:
  // Reads a header's metadata. Throws what HeaderReader::read_metadata(), MetadataValue::read_tree() and Tokens::read()
  // throw, and invalid_file for an impossible alignment or split.
  explicit Metadata(HeaderReader& header);

  std::uint64_t alignment() const { return alignment_; }
  const Split& split() const { return split_; }
  // Returns null if the architecture is unknown. Tensors then keep their names.
  const Architecture* architecture() const { return architecture_; }

  const Entries& entries() const { return entries_; }

  // Sets the model's card, configuration and vocabulary, and moves all other entries into its attributes. Requires: the
  // model has the tensors.
  void move_into(Model& model, const RopeFactors& factors, const std::string& path);

 private:
  // Reads poise.config, the keys of config.json in a file that Poise wrote; std::nullopt if it is missing.
  std::optional<Attributes> read_poise_config(const std::string& path);
  std::string explain_missing_hyperparameters() const;
  void read_card(Card& card);
  void merge_equal_layers(const std::string& architecture);
  bool has_hyperparameters() const;

  std::uint64_t alignment_ = kUsualAlignment;
  Split split_;
  const Architecture* architecture_ = nullptr;
  Entries entries_;
  std::map<std::string, std::string> types_;  // the types of entries that Poise would write with other types
  Tokens tokens_;
};

// Returns the keys of one file, in order: each part of a split model has its own. Throws what reading a header throws.
std::vector<MetadataKey> list_keys(const Input& input);

// Describes a tensor of the file, whose elements count as parameters.
struct CountedTensor {
  std::string_view name;
  Shape shape;  // the outermost dimension first
};

struct WrittenGeneral {
  std::string name;                 // general.name, from the model's attributes or written here; empty: none
  std::vector<std::string> losses;  // values of the card that the file cannot hold, one sentence each
};

// Appends the keys "general.*" that llama.cpp's converter writes (gguf-py/gguf/metadata.py of v0.5.0), unless they
// exist. They come from the card, README.md, generation_config.json, config.json, the name of the directory or file,
// and the number of parameters. Appends only the card's keys for a model from a GGUF file, and for one whose
// architecture is not known.
WrittenGeneral write_general(const Model& model, bool is_known, const std::vector<CountedTensor>& tensors,
                             KeyValues& out);

// Holds the parts of a name such as "org/Name-8B-Instruct-v0.3"; a missing part is empty.
struct NameParts {
  std::string organization;
  std::string name;
  std::string basename;
  std::string finetune;
  std::string version;
  std::string size_label;
};
// Splits a model's name into its parts. `parameters` is the model's number of parameters; 0: unknown.
NameParts parse_name(std::string_view id, std::uint64_t parameters);

// Makes "Nano Mistral" from "nano-mistral".
std::string make_title(std::string_view name);

}  // namespace poise::gguf
