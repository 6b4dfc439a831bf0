// Reads MessagePack (msgpack.org), one item after the other or as a tree.
//
// The first byte of an item gives its kind. For small items it also holds the number, length or count; for others,
// these follow, big-endian. The content of text, bytes or an extension comes next; the type of an extension, a signed
// byte, comes before the content. Arrays go on with their items, maps with keys and values in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/function_ref.hpp"
#include "syntax/value_budget.hpp"

namespace poise::msgpack {

enum class ItemKind : std::uint8_t { nil, boolean, natural, negative, real, text, bytes, array, map, extension };

// Returns the kind as messages name it: "a map".
std::string_view to_string(ItemKind kind);

// Describes the head of an item.
struct Item {
  ItemKind kind = ItemKind::nil;
  std::int8_t type = 0;     // the type of an extension
  std::uint64_t begin = 0;  // offset of its first byte
  // The number in the head: a boolean or natural number; the 64 bits of a negative or real number; the length of text,
  // bytes or an extension; or the number of items of an array or of pairs of a map.
  std::uint64_t argument = 0;
  std::uint64_t content = 0;  // offset of the content of text, bytes and extensions
};

// Reads heads in the order of the file: after a container's head come its items. Passes over the content of text, bytes
// and extensions without reading it. Throws invalid_file "context: field: problem" for an item that does not fit the
// range, a count of more items than bytes are left, and a byte with which no item begins.
class Reader {
 public:
  // Requires: the source outlives the reader.
  Reader(const Source& source, std::string context, std::uint64_t begin, std::uint64_t end);

  Item read_head();
  std::uint64_t position() const { return in_.position(); }
  std::uint64_t remaining() const { return in_.remaining(); }

  [[noreturn]] void fail(std::string_view field, std::string_view problem, std::uint64_t offset,
                         ErrorKind kind = ErrorKind::invalid_file) const {
    in_.fail(kind, field, problem, offset);
  }

 private:
  std::uint64_t read_number(unsigned bytes);
  Item skip_content(Item item, std::uint64_t length);
  Item set_item_count(Item item, std::uint64_t count);

  ByteReader in_;
};

// Reads the heads of a whole source, which is one item with all that is inside it. Items are numbered in the order of
// the file: after an array or map come its items, which for a map are keys and values in turn.
class Tree {
 public:
  using Index = std::size_t;
  static constexpr Index kRoot = 0;

  // Throws the errors of Reader, with the keys that lead to the item; invalid_file for bytes after the item, keys that
  // are not UTF-8 text or appear twice in their map, and nesting deeper than kMaxNesting; unsupported for more items
  // than a file of this size may hold in memory. Requires: the source outlives the tree.
  Tree(const Source& source, std::string context);

  std::size_t size() const { return nodes_.size(); }
  const Item& operator[](Index item) const { return nodes_[item].item; }
  // Returns the number after the item and all that is inside it. The items of a container are those from item + 1 on:
  // for (Index i = item + 1; i < find_after(item); i = find_after(i)).
  Index find_after(Index item) const { return item + nodes_[item].items; }
  // Returns the value of a map's key; std::nullopt if it is absent. Requires: a map.
  std::optional<Index> find(Index map, std::string_view key) const;

  // Throws invalid_file for text that is not UTF-8. Requires: text.
  std::string read_text(Index item) const;
  // Returns an item with all that is inside it; `extension` makes the values of extensions. Charges the budget.
  Value read_value(Index item, FunctionRef<Value(const Item&)> extension);

  // The tree, its values, and the objects that a reader makes of them share this budget.
  ValueBudget& budget() { return budget_; }
  // Throws unsupported unless `affordable`, which is the result of a charge to the budget.
  void require_affordable(bool affordable, std::uint64_t offset) const;

  [[noreturn]] void fail(std::string_view field, std::string_view problem, std::uint64_t offset,
                         ErrorKind kind = ErrorKind::invalid_file) const;

 private:
  struct Node {
    Item item;
    std::size_t items = 1;  // itself, and all inside
  };

  // Names a step on the path to an item: its key in a map, or its number in an array.
  struct PathStep {
    std::optional<std::string> key = {};
    std::uint64_t number = 0;
  };
  using Path = std::vector<PathStep>;

  void add_item(Reader& in, Path& path);
  void add_pairs(Reader& in, std::uint64_t pairs, Path& path);
  std::string read_content(const Item& item) const;

  const Source& source_;
  std::string context_;
  ValueBudget budget_;
  std::deque<Node> nodes_;  // a deque, because it grows without copying the nodes
};

}  // namespace poise::msgpack
