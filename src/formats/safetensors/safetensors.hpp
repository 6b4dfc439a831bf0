// Reads, edits and writes safetensors files: a JSON header, then the tensors' bytes. Reading is strict
// (docs/formats/safetensors.md); writing aligns the tensors.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/dtype.hpp>

#include "bytes/checked.hpp"
#include "bytes/function_ref.hpp"
#include "formats/format.hpp"
#include "io/meter.hpp"
#include "io/sink.hpp"

namespace poise {

extern const Format kSafetensors;

// Passes a file's tensors to `add_tensor` in the order of their bytes; returns its `__metadata__`. If `add_tensor`
// throws an error without an offset, adds that of the tensor's description in the header. Throws invalid_file,
// unsupported, io.
Attributes read_safetensors(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor);

// Returns the keys of a file's `__metadata__`, for Format::list_keys.
std::vector<MetadataKey> list_safetensors_keys(const SourcePtr& source);

// Changes `__metadata__` for Format::edit, in place if it fits the header's length. Values other than text become JSON
// text.
std::unique_ptr<PreparedEdit> edit_safetensors(const Input& input, const AttributeChanges& changes);

// Writes one safetensors file: a whole model, or a shard.
class SafetensorsFile {
 public:
  // Throws unsupported for a tensor that a file cannot hold, with its name, for too large a header, and for more
  // metadata than readers accept. Requires: the tensors outlive this, and `metadata` has only texts.
  SafetensorsFile(std::vector<const Tensor*> tensors, Attributes metadata);

  std::uint64_t bytes() const;
  std::uint64_t tensor_bytes() const { return tensor_bytes_; }
  void write(Sink& sink, Meter& meter) const;

 private:
  // The tensors with the widest elements come first, so that each tensor begins at a multiple of its element's size.
  // Tensors of equal width keep the given order.
  std::vector<const Tensor*> tensors_;
  std::string header_;
  std::uint64_t tensor_bytes_ = 0;
};

// Returns sentences about those of `attributes` that become JSON text in the file's metadata, and about the attributes
// of tensors, which a file cannot hold.
std::vector<std::string> list_safetensors_losses(const Model& model, const Attributes& attributes);

}  // namespace poise

namespace poise::safetensors {

// Holds an element type of safetensors (docs/formats/safetensors.md).
//
// Source: enum Dtype in tensor.rs of the safetensors library, version 0.8.

struct ElementType {
  std::string_view name;
  DType dtype;
  unsigned own_bits = 0;  // the bits of an element, if `dtype` is unknown

  constexpr bool is_known() const { return dtype != DType::unknown; }
  unsigned bits() const { return is_known() ? info(dtype).bits : own_bits; }
};

// Lists the types by their names in a file. The library does not specify the order in which three bytes hold four
// elements of six bits (F6_E2M3, F6_E3M2): such tensors are copied, never decoded.
inline constexpr std::array kElementTypes = std::to_array<ElementType>({
    {"F64", DType::f64},
    {"F32", DType::f32},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"F8_E4M3", DType::f8_e4m3},
    {"F8_E5M2", DType::f8_e5m2},
    {"F8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"F8_E8M0", DType::f8_e8m0},
    {"F6_E2M3", DType::unknown, 6},
    {"F6_E3M2", DType::unknown, 6},
    {"F4", DType::f4_e2m1},
    {"C64", DType::complex64},
    {"I64", DType::i64},
    {"I32", DType::i32},
    {"I16", DType::i16},
    {"I8", DType::i8},
    {"U64", DType::u64},
    {"U32", DType::u32},
    {"U16", DType::u16},
    {"U8", DType::u8},
    {"BOOL", DType::boolean},
});

// Each function returns the row of a type, or null if there is none.
inline const ElementType* find_type(std::string_view name) {
  const auto* const row = std::ranges::find(kElementTypes, name, &ElementType::name);
  return row == kElementTypes.end() ? nullptr : row;
}
inline const ElementType* find_type(DType dtype) {
  const auto* const row = std::ranges::find(kElementTypes, dtype, &ElementType::dtype);
  return row == kElementTypes.end() || !row->is_known() ? nullptr : row;
}

// A safetensors file has this layout:
//
//   u64            length N of the header
//   N bytes        white space, and JSON: {"__metadata__": {text: text}?,
//                  name: {"dtype": "F16", "shape": [..], "data_offsets": [begin, end]}, ...}
//   rest           the tensors' bytes; offsets count from here
//
// The tensors fill the rest exactly: no holes, no overlaps, nothing after the last one.

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the safetensors library
inline constexpr std::uint64_t kSizeBytes = 8;                 // the size of the field N
inline constexpr std::uint64_t kAlignment = 8;  // the data begin at a multiple of this, the size of the widest elements
inline constexpr std::string_view kMetadata = "__metadata__";

// Some writers align the object with white space before it, which the library accepts.
inline constexpr std::string_view kWhiteSpace = " \t\n\r";

// Returns true if the elements, of `bits` bits each, end at a whole byte.
inline bool fills_whole_bytes(unsigned bits, std::uint64_t elements) { return elements % 8 * bits % 8 == 0; }

// Returns the number of bytes that the elements take; std::nullopt on overflow.
inline std::optional<std::uint64_t> count_bytes(unsigned bits, std::uint64_t elements) {
  const auto whole = checked_mul(elements / 8, bits);
  return whole ? checked_add(*whole, (elements % 8 * bits + 7) / 8) : std::nullopt;
}

}  // namespace poise::safetensors
