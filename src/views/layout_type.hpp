// LayoutType describes one layout: a way in which parts hold a tensor's elements.
//
// To add a layout, write a file in views/ with its row, and add the row to the table in layout_type.cpp. inspect,
// verify, convert, diff, run and zTensor 1.1 and 2 then use it. A format's own notation belongs in the format's folder.
// A row in runtime/stored_form.cpp lets kernels multiply by codes in their stored form.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "codec/affine.hpp"

namespace poise {

// Checks that a tensor's parts have the types and sizes that its layout, attributes and shape require. Throws
// invalid_file (without path) naming tensor, part, what was expected and what was found. Reads no element, but asks
// every part for its size; a compressed part without a size is decoded for that. Accepts unknown layouts, types and
// encodings. Requires: a shape whose product fits 64 bits.
void check_parts(const Tensor& tensor);

// Does what check_parts() does, and also checks that parts do not contradict each other: an index must name existing
// groups. Reads the index.
void check_content(const Tensor& tensor);

// Several layouts use the checks below. Each throws invalid_file (without path) naming the tensor, and the part or
// attribute at fault.

// Throws unless the tensor has exactly these parts.
void require_roles(const Tensor& tensor, std::initializer_list<std::string_view> roles);
// Throws unless the part has that type.
void require_type(const Tensor& tensor, const Part& part, DType dtype);
// Throws unless the part has `elements` elements of its type; std::nullopt is more than any part can have.
void require_elements(const Tensor& tensor, const Part& part, std::optional<std::uint64_t> elements);
// Returns the attribute. Throws unless it is a positive integer.
std::uint64_t require_positive_attribute(const Tensor& tensor, std::string_view key);

struct BlockType;

// Describes which values a part may hold, given its type and its tensor's layout.
struct ValueRules {
  enum class LastHalf : std::uint8_t { used, unused, without_code };  // the high half of the last byte
  enum class ByteCodes : std::uint8_t { any, signed4, unsigned4 };    // codes of four bits, one a byte

  DType dtype = DType::unknown;
  LastHalf last_half = LastHalf::used;
  ByteCodes codes = ByteCodes::any;
  const BlockType* blocks = nullptr;  // set if the part has blocks of a type that can be decoded

  friend auto operator<=>(const ValueRules&, const ValueRules&) = default;
};

// Returns the rules that the tensor's layout has for the part.
ValueRules get_value_rules(const Tensor& tensor, const Part& part);

// Returns the format of the codes; std::nullopt for ByteCodes::any.
std::optional<CodeFormat> get_code_format(ValueRules::ByteCodes codes);

// Returns a message such as "element 7 is not finite".
std::string describe_bad_element(DType dtype, std::uint64_t element);
// Returns the fault of a part's last byte, or std::nullopt if there is none.
std::optional<std::string> find_last_byte_fault(ValueRules::LastHalf half, std::byte last);

// Describes one layout, as a row of the table. The comment of a column that may be null gives the default.
struct LayoutType {
  std::string_view name;   // "sparse_csr", "zt.mx/1"
  bool quantized = false;  // elements are codes, with parts or attributes that decode them

  // Returns the layout that `name` describes together with the tensor's attributes and parts; std::nullopt if `name`
  // does not belong to this row. Throws invalid_file (without path) naming tensor and attribute when an attribute is
  // invalid. Null: no name describes the layout.
  std::optional<TensorLayout> (*read)(const Tensor& tensor, std::string_view name) = nullptr;

  // Throws invalid_file (without path) naming tensor and part where parts do not fit layout and shape. Reads no data.
  // Null: no check.
  void (*check)(const Tensor& tensor) = nullptr;
  // True if check_parts() calls check() only with parts whose types and encodings Poise knows. zTensor 2 calls it
  // always.
  bool needs_known_parts = false;
  // Throws invalid_file naming tensor and part where the content of a part contradicts the others; reads that part.
  // Null: parts cannot contradict each other. Requires: check() passes, and the types and sizes of all parts are known.
  void (*check_content)(const Tensor& tensor) = nullptr;
  // Returns faults of the scheme itself, such as a scale that is not finite. Null: there are none.
  std::vector<Finding> (*scheme_faults)(const Tensor& tensor) = nullptr;
  // Returns which values a part may hold. Null: any of its type.
  ValueRules (*value_rules)(const Tensor& tensor, const Part& part) = nullptr;

  // Returns true when the elements are real floating-point numbers that elements() computes. Null: false.
  bool (*has_float_elements)(const Tensor& tensor) = nullptr;
  // Returns the type of the blob from elements(). Null: f32.
  DType (*element_type)(const Tensor& tensor) = nullptr;
  // Returns all elements in row-major order, computed when read. Null: not available. Requires:
  // has_float_elements(tensor), or a layout whose elements may be of any type.
  BlobPtr (*elements)(const Tensor& tensor) = nullptr;

  // Returns how the elements are stored, in the notation of StoredType: "bf16", "group4:128". Null: describe_storage().
  std::string (*stored_type)(const Tensor& tensor) = nullptr;
  // Returns true when the tensor is stored as `type` already. Null: false.
  bool (*is_stored_as)(const Tensor& tensor, const StoredType& type) = nullptr;

  // Compares two tensors of this layout and of one shape: returns true when equal bytes in all parts mean equal
  // elements. Null: true.
  bool (*same_scheme)(const Tensor& a, const Tensor& b) = nullptr;
  // Returns true for attributes that describe the scheme. Null: false.
  bool (*is_scheme_attribute)(std::string_view attribute) = nullptr;
  // Returns the same text for types of a part that mean the same. std::nullopt, or null: each type has its own meaning.
  std::optional<std::string> (*type_meaning)(const Part& part) = nullptr;
};

namespace layouts {

extern const LayoutType dense;
extern const LayoutType sparse_csr;
extern const LayoutType sparse_coo;
extern const LayoutType groups;
extern const LayoutType affine;
extern const LayoutType mx;
extern const LayoutType block_scaled;
extern const LayoutType codebook;
extern const LayoutType indexed_groups;
extern const LayoutType blocks;  // all of ggml's block types, each with its own layout name
extern const LayoutType other;   // unknown layouts, which are only copied

}  // namespace layouts

// Returns the rows of all layouts except `other`.
std::span<const LayoutType* const> list_layout_types();

// Returns the row of a layout; `other` if no row describes it.
const LayoutType& find_layout_type(const TensorLayout& layout);

// Throws invalid_file (without path) with the tensor's name and the problem.
[[noreturn]] void fail_parts(const Tensor& tensor, std::string_view problem);
// Returns the part `data`. Throws invalid_file (without path) if it is missing.
const Part& require_data(const Tensor& tensor);

// Returns the row of the layout in which tensors of that type are stored.
const LayoutType& find_layout_type(const StoredType& type);

}  // namespace poise
