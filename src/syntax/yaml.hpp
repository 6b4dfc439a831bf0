// Reads YAML, in which recipes are written: a document becomes a tree of nodes with line numbers.
//
// yaml-cpp reads the text. The size of the text, the number of nodes (those of an alias count each time) and their
// depth are limited, so that a small text cannot make a large tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

struct YamlKey {
  std::string text;
  std::size_t line = 1;
};

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  std::size_t line = 1;              // the first line is 1
  std::string text = {};             // the text of a scalar
  bool is_plain = true;              // false: quoted, a block of lines, or with a tag
  std::vector<YamlKey> keys = {};    // the keys of a map, in order and unique
  std::vector<YamlNode> items = {};  // the items of a list, or the values of a map's keys

  // Returns the value of a key; null if it is absent.
  const YamlNode* find(std::string_view key) const;
};

inline constexpr std::size_t kMostYamlBytes = std::size_t{1} << 20;

// Returns the only document of a text; a node of kind `null` for an empty text. Throws invalid_file with `path` and
// "line 3: ..." for text that is not YAML, several documents, keys that are repeated or not text, aliases inside the
// node that they name, and texts beyond the limits.
YamlNode parse_yaml(std::string_view text, const std::string& path);

}  // namespace poise
