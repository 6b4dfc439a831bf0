// The keys "general.*" about a model that llama.cpp's converter writes (gguf-py/gguf/metadata.py of v0.5.0): what the
// card and the configuration of a directory state, what its name says by the usual order of names, and how many
// parameters there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "formats/gguf/key_values.hpp"

namespace poise::gguf {

// A tensor of the file.
struct CountedTensor {
  std::string_view name;
  Shape shape;  // the innermost dimension last
};

struct WrittenGeneral {
  std::string name;                 // general.name, of the model's attributes or one that is written; empty: none
  std::vector<std::string> losses;  // of the card, one sentence each
};

// Appends the keys that are not there yet: of a model that llama.cpp does not know only those of the card.
WrittenGeneral write_general(const Model& model, bool is_known, const std::vector<CountedTensor>& tensors,
                             KeyValues& out);

// The parts of "org/Name-8B-Instruct-v0.3", each empty if it is not there. `parameters`: of the model; 0: unknown.
struct NameParts {
  std::string organization;
  std::string name;
  std::string basename;
  std::string finetune;
  std::string version;
  std::string size_label;
};
NameParts parse_name(std::string_view id, std::uint64_t parameters);

// "nano-mistral" becomes "Nano Mistral".
std::string make_title(std::string_view name);

}  // namespace poise::gguf
