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

// Returns true if the file begins as a map whose first key is text, and the first extension of type kArray among the
// 1000 items after this key holds an array. Throws only io.
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
  std::string type;         // NumPy's name of the type, such as "float32"
  std::uint64_t at = 0;     // the offset of the array in the file
  std::uint64_t begin = 0;  // the offset of the elements
  std::uint64_t bytes = 0;

  // Returns the element type; std::nullopt if Poise does not have it.
  std::optional<DType> dtype() const;
  std::string explain_unsupported_type() const;
};

// Reads the array in an extension, except its elements. Throws invalid_file for other content, and for a number of
// bytes that does not fit shape and type. Accepts types that Poise does not have. Messages begin with `context`.
FlaxArray read_array(const Source& source, const std::string& context, const msgpack::Item& extension);

// Describes an array in chunks. In the file it is a map with the key kChunked. The key "shape" has a map from "0", "1",
// ... to the lengths of the dimensions. The key "chunks" has a map from "0", "1", ... to arrays of one dimension, which
// hold the elements one after the other.
struct ChunkedArray {
  FlaxArray array;  // the whole array; its bytes are in the chunks
  std::vector<FlaxArray> chunks;
};
// Reads an array in chunks. Throws invalid_file for a missing key, and for chunks that do not have one dimension, one
// type, and together as many elements as the shape.
ChunkedArray read_chunked(const msgpack::Tree& tree, msgpack::Tree::Index map, const Source& source,
                          const std::string& context);

}  // namespace poise::flax
