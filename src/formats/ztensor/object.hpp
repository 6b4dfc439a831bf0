// Declares what all versions of zTensor share: objects (an object describes one tensor), the bytes of manifests,
// limits, and the names of element types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/source.hpp>
#include <poise/tensor.hpp>

#include "formats/spellings.hpp"
#include "io/extents.hpp"
#include "syntax/cbor.hpp"
#include "syntax/value_budget.hpp"

namespace poise::ztensor {

// Describes one run of stored bytes (a component in 1.x, a part in 2). Most texts are views. Requires: the cursor that
// read the texts, and the cursor's bytes, outlive this.
struct Component {
  std::string_view role;
  DType dtype = DType::unknown;
  std::string spelling;  // the name of the type in the file, as in Part::spelling
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // stored
  std::string_view encoding = "raw";
  std::optional<std::uint64_t> decoded_length;  // if the file has it
  std::string_view digest;                      // empty: none
  std::string_view shard;                       // version 2; empty: this file
  std::uint64_t position = 0;                   // the offset in the file of the map that describes this
};

struct StoredObject {
  std::string_view name;
  Shape shape;
  std::string_view layout = "dense";  // "format" in 1.x
  Attributes attributes;
  std::vector<Component> components;
  bool big_endian = false;     // version 0.1
  std::uint64_t position = 0;  // the offset in the file of the map that describes this
};

// Prepares `object` for the object at the cursor: clears it, but keeps the memory of `components`, and sets `position`.
// `already` is the number of objects before. Throws invalid_file if there are kMaxTensors already.
void begin_object(StoredObject& object, std::size_t already, const cbor::Cursor& in);

// Parses an array of numbers. Throws invalid_file for more than kMaxRank.
Shape parse_shape(cbor::Cursor& in);

// Parses a text that names a type, a layout, an encoding or a digest. Throws invalid_file for more than
// kMaxTypeNameBytes, because every part may keep such a text.
std::string_view parse_type_name(cbor::Cursor& in);

// Returns the text of a digest of no bytes: plans use it, because all digests of an algorithm have the same length.
// Returns an empty text for DigestAlgorithm::none.
std::string compute_empty_digest(DigestAlgorithm algorithm);

// Returns the part of a reader's memory budget that names and attributes of a manifest take (measure_cost()). `Tensors`
// is a list of StoredTensor or Tensor.
template <typename Tensors>
std::uint64_t measure_manifest(const Attributes& attributes, const Tensors& tensors) {
  std::uint64_t cost = measure_cost(attributes);
  for (const auto& tensor : tensors)
    cost += measure_cost(Value(tensor.name)) + (tensor.attributes.empty() ? 0 : measure_cost(tensor.attributes));
  return cost;
}

// Returns the part whose blob is stored at this extent; the first part if no blob states this place. Requires: the
// tensor has parts.
const Part& find_part(const Tensor& tensor, const Extent& extent);

// Returns a tensor's name, cut if it is too long for a message.
std::string shorten_name(std::string_view name);

struct ManifestRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Holds the bytes of a manifest in memory: borrowed from a mapped file, or copied.
class ManifestBytes {
 public:
  // Requires: the range is in the source, which outlives this.
  ManifestBytes(const Source& source, const ManifestRange& range) : source_(source), done_(range.begin) {
    const std::uint64_t length = range.end - range.begin;
    if (source.mapped()) {
      bytes_ = source.bytes().subspan(range.begin, length);
    } else {
      copy_.resize(length);
      source.read(range.begin, copy_);
      bytes_ = copy_;
    }
  }
  ManifestBytes(const ManifestBytes&) = delete;
  ManifestBytes& operator=(const ManifestBytes&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  // Releases mapped pages before `position`, an offset in the file up to which the caller has read. Later reads load
  // the pages again. Releases at least kPieceBytes at a time.
  void release_before(std::uint64_t position) {
    if (!source_.mapped() || position - done_ < kPieceBytes) return;
    source_.done_with(done_, position - done_);
    done_ = position;
  }

 private:
  static constexpr std::uint64_t kPieceBytes = 256 << 10;

  const Source& source_;
  std::uint64_t done_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise::ztensor

namespace poise {

// zTensor files have these limits, besides those of every model. docs/limits.md lists them for users.

inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 30;
inline constexpr std::size_t kMaxTypeNameBytes = 256;  // element types, layouts, encodings and digests

// Version 2 sets these limits.
inline constexpr std::size_t kMaxNameBytes2 = 1024;
inline constexpr std::size_t kMaxShards = 65'536;
inline constexpr std::size_t kMaxShardNameBytes2 = 64;

}  // namespace poise

namespace poise::ztensor {

// Returns the blobs of tensors in the order of writing. `Tensors` is a list of Tensor or StoredTensor.
template <class Tensors>
std::vector<BlobPtr> list_part_blobs(const Tensors& tensors) {
  std::vector<BlobPtr> blobs;
  for (const auto& tensor : tensors) {
    for (const auto& part : tensor.parts) blobs.push_back(part.blob);
  }
  return blobs;
}

inline std::uint64_t sum_sizes(const std::vector<BlobPtr>& blobs) {
  std::uint64_t sum = 0;
  for (const BlobPtr& blob : blobs) sum += blob->size();
  return sum;
}

// zTensor 0.1 and 1.0 use these names of element types (docs/formats/ztensor.md).
inline constexpr std::array kSpellings0 = {
    Spelling<std::string_view>{DType::f64, "float64"},  Spelling<std::string_view>{DType::f32, "float32"},
    Spelling<std::string_view>{DType::f16, "float16"},  Spelling<std::string_view>{DType::bf16, "bfloat16"},
    Spelling<std::string_view>{DType::i64, "int64"},    Spelling<std::string_view>{DType::i32, "int32"},
    Spelling<std::string_view>{DType::i16, "int16"},    Spelling<std::string_view>{DType::i8, "int8"},
    Spelling<std::string_view>{DType::u64, "uint64"},   Spelling<std::string_view>{DType::u32, "uint32"},
    Spelling<std::string_view>{DType::u16, "uint16"},   Spelling<std::string_view>{DType::u8, "uint8"},
    Spelling<std::string_view>{DType::boolean, "bool"},
};

// zTensor 1.1 and 1.2 use these names.
inline constexpr std::array kSpellings1 = {
    Spelling<std::string_view>{DType::f64, "f64"},
    Spelling<std::string_view>{DType::f32, "f32"},
    Spelling<std::string_view>{DType::f16, "f16"},
    Spelling<std::string_view>{DType::bf16, "bf16"},
    Spelling<std::string_view>{DType::f8_e4m3, "f8_e4m3"},
    Spelling<std::string_view>{DType::f8_e5m2, "f8_e5m2"},
    Spelling<std::string_view>{DType::complex64, "complex64"},
    Spelling<std::string_view>{DType::complex128, "complex128"},
    Spelling<std::string_view>{DType::i64, "i64"},
    Spelling<std::string_view>{DType::i32, "i32"},
    Spelling<std::string_view>{DType::i16, "i16"},
    Spelling<std::string_view>{DType::i8, "i8"},
    Spelling<std::string_view>{DType::u64, "u64"},
    Spelling<std::string_view>{DType::u32, "u32"},
    Spelling<std::string_view>{DType::u16, "u16"},
    Spelling<std::string_view>{DType::u8, "u8"},
    Spelling<std::string_view>{DType::boolean, "bool"},
};

// Holds a type of zTensor 2: the storage type of the bytes, and the logical type of the elements. An empty logical type
// means that the elements have the storage type.
struct StorageType {
  std::string_view storage;
  std::string_view logical;
  friend bool operator==(const StorageType&, const StorageType&) = default;
};
inline constexpr std::array kSpellings2 = {
    Spelling<StorageType>{DType::f64, StorageType{"f64", ""}},
    Spelling<StorageType>{DType::f32, StorageType{"f32", ""}},
    Spelling<StorageType>{DType::f16, StorageType{"f16", ""}},
    Spelling<StorageType>{DType::bf16, StorageType{"bf16", ""}},
    Spelling<StorageType>{DType::f8_e4m3, StorageType{"u8", "f8_e4m3fn"}},
    Spelling<StorageType>{DType::f8_e5m2, StorageType{"u8", "f8_e5m2"}},
    Spelling<StorageType>{DType::f8_e4m3fnuz, StorageType{"u8", "f8_e4m3fnuz"}},
    Spelling<StorageType>{DType::f8_e5m2fnuz, StorageType{"u8", "f8_e5m2fnuz"}},
    Spelling<StorageType>{DType::f8_e8m0, StorageType{"u8", "f8_e8m0"}},
    Spelling<StorageType>{DType::f4_e2m1, StorageType{"u8", "f4_e2m1"}},
    Spelling<StorageType>{DType::complex64, StorageType{"f32", "complex64"}},
    Spelling<StorageType>{DType::complex128, StorageType{"f64", "complex128"}},
    Spelling<StorageType>{DType::i64, StorageType{"i64", ""}},
    Spelling<StorageType>{DType::i32, StorageType{"i32", ""}},
    Spelling<StorageType>{DType::i16, StorageType{"i16", ""}},
    Spelling<StorageType>{DType::i8, StorageType{"i8", ""}},
    Spelling<StorageType>{DType::u64, StorageType{"u64", ""}},
    Spelling<StorageType>{DType::u32, StorageType{"u32", ""}},
    Spelling<StorageType>{DType::u16, StorageType{"u16", ""}},
    Spelling<StorageType>{DType::u8, StorageType{"u8", ""}},
    Spelling<StorageType>{DType::boolean, StorageType{"u8", "bool"}},
};

// Returns the element type with this storage type and logical type; std::nullopt if Poise does not know it.
inline std::optional<DType> find_stored_dtype(std::string_view storage, std::string_view logical) {
  return find_spelled_dtype(kSpellings2, StorageType{storage, logical});
}

}  // namespace poise::ztensor
