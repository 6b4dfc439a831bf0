// Reads files of flax.serialization.to_bytes(): one MessagePack item, nested maps with arrays in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <poise/dtype.hpp>
#include <poise/source.hpp>
#include <poise/tensor.hpp>

#include "formats/format.hpp"
#include "syntax/msgpack.hpp"

namespace poise::flax {

// Returns true if the file is a map with an array among its first 1000 items.
bool is_flax(const Input& input);

Model read(const Input& input, const ReadOptions& options);

// flax.serialization packs an array as an extension (docs/formats/flax.md), whose content is MessagePack again: [shape,
// name of the element type, bytes of the elements in row-major order].

// flax.serialization defines these types of MessagePack extensions.
inline constexpr std::int8_t kArray = 1;
inline constexpr std::int8_t kComplex = 2;  // a Python complex: [real, imaginary]
inline constexpr std::int8_t kScalar = 3;   // a NumPy scalar: an array without dimensions

// A map with this key is an array in chunks.
inline constexpr std::string_view kChunked = "__msgpack_chunked_array__";

struct FlaxArray {
  Shape shape;
  std::string type;         // NumPy's name of the type: "float32"
  std::uint64_t at = 0;     // the offset of the array in the file
  std::uint64_t begin = 0;  // the offset of the elements
  std::uint64_t bytes = 0;

  // Returns std::nullopt if Poise has no such type.
  std::optional<DType> dtype() const;
  std::string explain_unsupported_type() const;
};

// Reads the array in an extension. Throws invalid_file for other content, and for a number of elements that does not
// fit the shape. Messages begin with `context`.
FlaxArray read_array(const Source& source, const std::string& context, const msgpack::Item& extension);

// Describes an array in chunks, a map with the key kChunked. Its key "shape" maps "0", "1", ... to lengths; "chunks"
// maps such keys to arrays of one dimension, which hold the elements one after the other.
struct ChunkedArray {
  FlaxArray array;  // the whole array; its bytes are in the chunks
  std::vector<FlaxArray> chunks;
};
// Reads an array in chunks. Throws invalid_file.
ChunkedArray read_chunked(const msgpack::Tree& tree, msgpack::Tree::Index map, const Source& source,
                          const std::string& context);

}  // namespace poise::flax
