// LayerList describes the layers of a model of any family, by the names of its tensors: PREFIX.NUMBER.REST.
//
// For a family that Poise knows, PREFIX is in the family's table, in several spellings. For other models it is the
// prefix of the list that has as many layers as the configuration states, or else of the longest list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// Holds a tensor's name, divided at the number of its layer: "model.layers.", 7 and ".mlp.up_proj.weight".
struct LayerName {
  std::string_view prefix;  // ends with a dot, or is empty
  std::uint64_t number;
  std::string_view rest;  // begins with a dot, or is empty
};

struct LayerList {
  std::vector<std::string> prefixes;
  std::uint64_t count = 0;         // the number of layers; not more than the model has tensors
  const Family* family = nullptr;  // null: the family is unknown, or the list is not in its table
  std::string object;  // the object of the configuration that describes the list; empty: the configuration itself

  std::optional<LayerName> split(std::string_view name) const;
};

// Holds a list of layers, and those of them that stay.
struct LayerCut {
  LayerList list;
  std::vector<std::uint64_t> kept;  // the numbers of these layers
  bool is_ascending = true;         // false if a merge has them in another order, or some of them twice

  // Returns the new number of a layer; std::nullopt if it is left out. Layers beyond `count`, which predict further
  // tokens, stay after the others.
  std::optional<std::uint64_t> find_new_number(std::uint64_t layer) const;
};

// Returns the cut that the option `layers` describes. Throws bad_argument.
LayerCut parse_layer_cut(const Model& model, std::string_view text);

// Changes the keys that count or list layers, in the configuration and in GGUF's attributes, so that they describe the
// layers that stay (cut_layers.cpp). Returns the changed keys. Throws unsupported if no key can describe how each layer
// computes.
std::vector<std::string> cut_layer_keys(Model& model, const LayerCut& cut);

// Returns the object of a configuration that describes a list.
const Attributes& find_layer_keys(const Attributes& config, const LayerList& list);

// Returns true if the key has the number of layers of the list.
bool counts_layers(std::string_view key, const LayerList& list);

}  // namespace poise
