// Reads MessagePack: the first byte of an item gives its kind; msgpack.hpp describes items. Source: the
// specification at github.com/msgpack/msgpack, "Formats".
#include "syntax/msgpack.hpp"

#include <array>
#include <bit>
#include <unordered_set>

#include <fmt/format.h>

#include "bytes/utf8.hpp"

namespace poise::msgpack {
namespace {

bool has_content(ItemKind kind) {
  return kind == ItemKind::text || kind == ItemKind::bytes || kind == ItemKind::extension;
}

}  // namespace

std::string_view to_string(ItemKind kind) {
  constexpr std::array<std::string_view, 10> kNames = {
      "nil",      "a boolean", "a natural number", "a negative number", "a real number", "text", "bytes",
      "an array", "a map",     "an extension"};
  return kNames[static_cast<std::size_t>(kind)];
}

Reader::Reader(const Source& source, std::string context, std::uint64_t begin, std::uint64_t end)
    : in_(source, std::move(context), begin, end) {
  in_.set_big_endian(true);
}

std::uint64_t Reader::read_number(unsigned bytes) {
  switch (bytes) {
    case 1: return in_.read_u8("number");
    case 2: return in_.read_u16("number");
    case 4: return in_.read_u32("number");
    default: return in_.read_u64("number");
  }
}

Item Reader::skip_content(Item item, std::uint64_t length) {
  if (item.kind == ItemKind::extension) item.type = in_.read_i8("type of an extension");
  item.argument = length;
  item.content = in_.position();
  in_.skip(length, item.kind == ItemKind::text ? "text" : item.kind == ItemKind::bytes ? "bytes" : "extension");
  return item;
}

Item Reader::set_item_count(Item item, std::uint64_t count) {
  const bool is_map = item.kind == ItemKind::map;
  if (count > in_.remaining() / (is_map ? 2 : 1))
    in_.fail(is_map ? "map" : "array",
             fmt::format("{} {} do not fit the {} bytes left", count, is_map ? "pairs" : "items", in_.remaining()),
             item.begin);
  item.argument = count;
  return item;
}

// Reads the next head, by the ranges of the specification's table "Formats".
Item Reader::read_head() {
  Item item{.begin = in_.position()};
  const unsigned first = in_.read_u8("item");
  const auto make_item = [&](ItemKind kind) {
    item.kind = kind;
    return item;
  };
  const auto make_scalar = [&](ItemKind kind, std::uint64_t argument) {
    item.argument = argument;
    return make_item(kind);
  };
  if (first < 0x80) return make_scalar(ItemKind::natural, first);
  if (first < 0x90) return set_item_count(make_item(ItemKind::map), first & 0x0fU);
  if (first < 0xa0) return set_item_count(make_item(ItemKind::array), first & 0x0fU);
  if (first < 0xc0) return skip_content(make_item(ItemKind::text), first & 0x1fU);
  if (first >= 0xe0) return make_scalar(ItemKind::negative, static_cast<std::uint64_t>(std::int64_t{first} - 0x100));
  switch (first) {
    case 0xc0: return item;
    case 0xc2:
    case 0xc3: return make_scalar(ItemKind::boolean, first & 1U);
    case 0xc4:
    case 0xc5:
    case 0xc6: return skip_content(make_item(ItemKind::bytes), read_number(1U << (first - 0xc4U)));
    case 0xc7:
    case 0xc8:
    case 0xc9: return skip_content(make_item(ItemKind::extension), read_number(1U << (first - 0xc7U)));
    case 0xca:
      return make_scalar(ItemKind::real, std::bit_cast<std::uint64_t>(static_cast<double>(in_.read_f32("number"))));
    case 0xcb: return make_scalar(ItemKind::real, in_.read_u64("number"));
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return make_scalar(ItemKind::natural, read_number(1U << (first - 0xccU)));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      const unsigned width = 1U << (first - 0xd0U);
      const unsigned unused = 64 - 8 * width;
      const auto value = static_cast<std::int64_t>(read_number(width) << unused) >> unused;
      return make_scalar(value < 0 ? ItemKind::negative : ItemKind::natural, static_cast<std::uint64_t>(value));
    }
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return skip_content(make_item(ItemKind::extension), std::uint64_t{1} << (first - 0xd4U));
    case 0xd9:
    case 0xda:
    case 0xdb: return skip_content(make_item(ItemKind::text), read_number(1U << (first - 0xd9U)));
    case 0xdc:
    case 0xdd: return set_item_count(make_item(ItemKind::array), read_number(2U << (first - 0xdcU)));
    case 0xde:
    case 0xdf: return set_item_count(make_item(ItemKind::map), read_number(2U << (first - 0xdeU)));
    default: in_.fail("item", fmt::format("no item begins with 0x{:02x}", first), item.begin);
  }
}

Tree::Tree(const Source& source, std::string context)
    : source_(source), context_(std::move(context)), budget_(source.size()) {
  Path path;
  Reader in(source, "", 0, source.size());
  try {
    add_item(in, path);
  } catch (const Error& error) {
    if (!error.offset()) throw;
    constexpr std::size_t kMost = 100;  // bytes of a key
    std::string message = context_;
    for (const PathStep& step : path) {
      std::string name = step.key ? step.key->substr(0, kMost) : fmt::format("item {}", step.number);
      name.resize(name.size() - measure_incomplete_tail(name));
      message += ": " + name;
    }
    throw Error(error.kind(), message + error.message(), error.path(), *error.offset());
  }
  if (in.remaining() > 0) fail("", fmt::format("{} bytes after the end", in.remaining()), in.position());
}

// Adds an item with all that is inside it. If it throws, `path` is the path to the faulty item.
void Tree::add_item(Reader& in, Path& path) {
  const Index index = nodes_.size();
  const std::uint64_t begin = in.position();
  if (path.size() > kMaxNesting) in.fail("", fmt::format("nested deeper than {} levels", kMaxNesting), begin);
  if (!budget_.charge_value())
    in.fail("", "more items than a file of this size may hold", begin, ErrorKind::unsupported);
  const Item item = in.read_head();
  nodes_.push_back({.item = item});
  if (item.kind == ItemKind::array) {
    const std::size_t depth = path.size();
    path.emplace_back();
    for (; path[depth].number < item.argument; ++path[depth].number) add_item(in, path);
    path.pop_back();
  } else if (item.kind == ItemKind::map) {
    add_pairs(in, item.argument, path);
  }
  nodes_[index].items = nodes_.size() - index;
}

void Tree::add_pairs(Reader& in, std::uint64_t pairs, Path& path) {
  std::unordered_set<std::string> seen;
  const std::size_t depth = path.size();
  path.emplace_back();
  for (std::uint64_t i = 0; i < pairs; ++i) {
    path[depth] = {.number = i};
    add_item(in, path);
    const Item item = nodes_.back().item;
    if (item.kind != ItemKind::text)
      in.fail("key", fmt::format("expected text, found {}", to_string(item.kind)), item.begin);
    if (!budget_.charge_text(item.argument))
      in.fail("", "more keys than a file of this size may hold", item.begin, ErrorKind::unsupported);
    std::string key = read_content(item);
    if (!is_utf8(key)) in.fail("key", "it is not UTF-8", item.begin);
    path[depth].key = key;
    if (!seen.insert(std::move(key)).second) in.fail("", "the key appears twice", item.begin);
    add_item(in, path);
  }
  path.pop_back();
}

std::string Tree::read_content(const Item& item) const {
  ByteReader in(source_, context_, item.content, item.content + item.argument);
  return std::string(in.read_text(item.argument, "text"));
}

std::optional<Tree::Index> Tree::find(Index map, std::string_view key) const {
  for (Index i = map + 1; i < find_after(map); i = find_after(i + 1)) {
    const Item& item = nodes_[i].item;
    if (item.argument == key.size() && read_content(item) == key) return i + 1;
  }
  return std::nullopt;
}

std::string Tree::read_text(Index item) const {
  std::string text = read_content(nodes_[item].item);
  if (!is_utf8(text)) fail("text", "it is not UTF-8", nodes_[item].item.begin);
  return text;
}

Value Tree::read_value(Index index, FunctionRef<Value(const Item&)> extension) {
  const Item& item = nodes_[index].item;
  require_affordable(budget_.charge_value(), item.begin);
  if (has_content(item.kind)) require_affordable(budget_.charge_text(item.argument), item.begin);
  switch (item.kind) {
    case ItemKind::nil: return {};
    case ItemKind::boolean: return item.argument != 0;
    case ItemKind::natural: return item.argument;
    case ItemKind::negative: return static_cast<std::int64_t>(item.argument);
    case ItemKind::real: return std::bit_cast<double>(item.argument);
    case ItemKind::text: return read_text(index);
    case ItemKind::bytes: {
      const std::string bytes = read_content(item);
      const auto all = std::as_bytes(std::span(bytes));
      return Value::Bytes(all.begin(), all.end());
    }
    case ItemKind::array: {
      Value::Array items;
      for (Index i = index + 1; i < find_after(index); i = find_after(i)) items.push_back(read_value(i, extension));
      return items;
    }
    case ItemKind::map: {
      std::vector<Attributes::Entry> entries;
      for (Index i = index + 1; i < find_after(index); i = find_after(i + 1)) {
        require_affordable(budget_.charge_text(nodes_[i].item.argument), item.begin);
        entries.emplace_back(read_content(nodes_[i].item), read_value(i + 1, extension));
      }
      return Attributes::from_unique(std::move(entries));
    }
    case ItemKind::extension: return extension(item);
  }
  return {};
}

void Tree::require_affordable(bool affordable, std::uint64_t offset) const {
  if (!affordable) fail("", "it takes more memory than its size justifies", offset, ErrorKind::unsupported);
}

void Tree::fail(std::string_view field, std::string_view problem, std::uint64_t offset, ErrorKind kind) const {
  ByteReader(source_, context_).fail(kind, field, problem, offset);
}

}  // namespace poise::msgpack
