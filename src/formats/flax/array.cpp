// Reads arrays as flax/serialization.py packs them. An array is an extension of type 1, whose content is MessagePack
// again: [shape, name of the element type, bytes]. An array above 1 GiB is a map with chunks. flax.hpp describes both.
#include "formats/flax/flax.hpp"

#include <array>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "formats/spellings.hpp"
#include "model/limits.hpp"

namespace poise::flax {
namespace {

using msgpack::Item;
using msgpack::ItemKind;
using msgpack::Tree;

// Lists values of numpy.dtype.name, with those that the package ml_dtypes adds.
constexpr std::array kTypes = {
    Spelling<std::string_view>{DType::f64, "float64"},
    Spelling<std::string_view>{DType::f32, "float32"},
    Spelling<std::string_view>{DType::f16, "float16"},
    Spelling<std::string_view>{DType::bf16, "bfloat16"},
    Spelling<std::string_view>{DType::f8_e4m3, "float8_e4m3fn"},
    Spelling<std::string_view>{DType::f8_e5m2, "float8_e5m2"},
    Spelling<std::string_view>{DType::f8_e4m3fnuz, "float8_e4m3fnuz"},
    Spelling<std::string_view>{DType::f8_e5m2fnuz, "float8_e5m2fnuz"},
    Spelling<std::string_view>{DType::f8_e8m0, "float8_e8m0fnu"},
    Spelling<std::string_view>{DType::i64, "int64"},
    Spelling<std::string_view>{DType::i32, "int32"},
    Spelling<std::string_view>{DType::i16, "int16"},
    Spelling<std::string_view>{DType::i8, "int8"},
    Spelling<std::string_view>{DType::u64, "uint64"},
    Spelling<std::string_view>{DType::u32, "uint32"},
    Spelling<std::string_view>{DType::u16, "uint16"},
    Spelling<std::string_view>{DType::u8, "uint8"},
    Spelling<std::string_view>{DType::boolean, "bool"},
    Spelling<std::string_view>{DType::complex64, "complex64"},
    Spelling<std::string_view>{DType::complex128, "complex128"},
};

constexpr std::uint64_t kMostTypeBytes = 64;

bool is_string(const Item& item) { return item.kind == ItemKind::text || item.kind == ItemKind::bytes; }

// Throws invalid_file if the number of bytes does not fit the shape and the type. For a type that Poise does not have,
// checks only that the number of elements fits 64 bits.
void require_bytes(const FlaxArray& array, const msgpack::Reader& in) {
  const auto dtype = array.dtype();
  const auto elements = element_count(array.shape);
  const auto expected = elements && dtype ? checked_mul(*elements, info(*dtype).bits / 8) : elements;
  if (!expected) in.fail("shape", fmt::format("{} has more than 2^64 bytes", to_string(array.shape)), array.at);
  if (dtype && *expected != array.bytes)
    in.fail("elements",
            fmt::format("{} of {} needs {} bytes, {} are there", to_string(array.shape), array.type, *expected,
                        array.bytes),
            array.begin);
}

// Lists the values of a map with the keys "0", "1", ..., in the order of these numbers. Throws invalid_file for another
// key.
class Numbered {
 public:
  Numbered(const Tree& tree, Tree::Index map, std::string_view field) {
    const Item& item = tree[map];
    if (item.kind != ItemKind::map)
      tree.fail(field, fmt::format("expected a map, found {}", to_string(item.kind)), item.begin);
    values_.resize(item.argument, Tree::kRoot);
    for (Tree::Index i = map + 1; i < tree.find_after(map); i = tree.find_after(i + 1)) {
      const std::string key = tree.read_text(i);
      const auto number = parse_number_text<std::uint64_t>(key);
      if (!number || *number >= values_.size() || key != std::to_string(*number))
        tree.fail(field, fmt::format("expected the keys 0 to {}, found \"{}\"", values_.size() - 1, key),
                  tree[i].begin);
      values_[*number] = i + 1;
    }
  }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<Tree::Index> values_;
};

}  // namespace

std::optional<DType> FlaxArray::dtype() const { return find_spelled_dtype(kTypes, std::string_view(type)); }

std::string FlaxArray::explain_unsupported_type() const {
  if (type.starts_with("void") || type.starts_with("V"))
    return fmt::format("its elements are raw bytes ({}): the file does not state their meaning", type);
  return fmt::format("its element type {} is not known", type);
}

FlaxArray read_array(const Source& source, const std::string& context, const Item& extension) {
  msgpack::Reader in(source, context, extension.content, extension.content + extension.argument);
  const auto expect = [&](bool is_expected, std::string_view field, std::string_view what, const Item& found) {
    if (!is_expected) in.fail(field, fmt::format("expected {}, found {}", what, to_string(found.kind)), found.begin);
  };
  const Item parts = in.read_head();
  expect(parts.kind == ItemKind::array && parts.argument == 3, "array", "an array of a shape, a type and elements",
         parts);
  const Item shape = in.read_head();
  expect(shape.kind == ItemKind::array, "shape", "an array", shape);
  if (shape.argument > kMaxRank) in.fail("shape", fmt::format("more than {} dimensions", kMaxRank), shape.begin);
  FlaxArray array;
  array.at = extension.begin;
  for (std::uint64_t i = 0; i < shape.argument; ++i) {
    const Item length = in.read_head();
    expect(length.kind == ItemKind::natural, "shape", "natural numbers", length);
    array.shape.push_back(length.argument);
  }
  const Item type = in.read_head();
  expect(is_string(type), "element type", "text", type);
  if (type.argument > kMostTypeBytes)
    in.fail("element type", fmt::format("its name has more than {} bytes", kMostTypeBytes), type.begin);
  array.type = ByteReader(source, context, type.content, type.content + type.argument).read_text(type.argument, "type");
  if (!is_utf8(array.type)) in.fail("element type", "it is not UTF-8", type.begin);
  const Item elements = in.read_head();
  expect(is_string(elements), "elements", "bytes", elements);
  array.begin = elements.content;
  array.bytes = elements.argument;
  if (in.remaining() > 0) in.fail("array", fmt::format("{} bytes after its elements", in.remaining()), in.position());
  require_bytes(array, in);
  return array;
}

ChunkedArray read_chunked(const Tree& tree, Tree::Index map, const Source& source, const std::string& context) {
  const std::uint64_t at = tree[map].begin;
  const auto part = [&](std::string_view key) {
    const auto found = tree.find(map, key);
    if (!found) tree.fail(context, fmt::format("array in chunks: the key \"{}\" is missing", key), at);
    return *found;
  };
  ChunkedArray chunked;
  chunked.array.at = at;
  for (const Tree::Index i : Numbered(tree, part("shape"), fmt::format("{}: shape", context))) {
    if (tree[i].kind != ItemKind::natural)
      tree.fail(context, fmt::format("shape: expected a natural number, found {}", to_string(tree[i].kind)),
                tree[i].begin);
    if (chunked.array.shape.size() == kMaxRank)
      tree.fail(context, fmt::format("shape: more than {} dimensions", kMaxRank), tree[i].begin);
    chunked.array.shape.push_back(tree[i].argument);
  }
  std::uint64_t elements = 0;
  for (const Tree::Index i : Numbered(tree, part("chunks"), fmt::format("{}: chunks", context))) {
    if (tree[i].kind != ItemKind::extension || tree[i].type != kArray)
      tree.fail(context, "chunks: expected arrays", tree[i].begin);
    FlaxArray chunk = read_array(source, fmt::format("flax: {}", context), tree[i]);
    if (chunk.shape.size() != 1)
      tree.fail(context, fmt::format("chunks: expected one dimension, found {}", to_string(chunk.shape)), chunk.at);
    if (chunked.chunks.empty()) chunked.array.type = chunk.type;
    if (chunk.type != chunked.array.type)
      tree.fail(context,
                fmt::format("chunks: expected {} as in the first chunk, found {}", chunked.array.type, chunk.type),
                chunk.at);
    elements = saturating_add(elements, chunk.shape[0]);
    chunked.array.bytes = saturating_add(chunked.array.bytes, chunk.bytes);
    chunked.chunks.push_back(std::move(chunk));
  }
  if (chunked.chunks.empty()) tree.fail(context, "chunks: expected at least one, found none", at);
  if (element_count(chunked.array.shape) != elements)
    tree.fail(context,
              fmt::format("chunks: they have {}, expected those of shape {}", format_count(elements, "element"),
                          to_string(chunked.array.shape)),
              at);
  return chunked;
}

}  // namespace poise::flax
