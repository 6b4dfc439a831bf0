// LayoutType: what Poise knows of one way in which a tensor's parts make up its elements.
//
// layout_type.cpp has the table. A new layout is one file in views/ with its row, and its place in the table: inspect,
// verify, convert, diff, run and zTensor 2 ask the row. What a format spells in words of its own is in the format's
// folder; a product with codes as they are stored is a row of runtime/stored_form.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "views/value_rules.hpp"

namespace poise {

// A column that may be null says what holds then.
struct LayoutType {
  std::string_view name;   // "sparse_csr", "zt.mx/1"
  bool quantized = false;  // elements are codes, with what makes numbers of them

  // The layout that this name, with the attributes and parts of the tensor, describes. Nothing: the name is another
  // row's. Throws invalid_file (without path) naming tensor and attribute where they make no sense.
  std::optional<TensorLayout> (*read)(const Tensor& tensor, std::string_view name) = nullptr;

  // Throws invalid_file (without path) naming tensor and part where parts do not fit layout and shape. Looks at no
  // data. Null: nothing is known of them.
  void (*check)(const Tensor& tensor) = nullptr;
  bool needs_known_parts = false;  // check() requires that types and sizes of all parts are known
  // What is wrong with the scheme itself, such as a scale that is not finite. Null: it has none, or it is a part.
  std::vector<Finding> (*scheme_faults)(const Tensor& tensor) = nullptr;
  // What the values in a part have to be. Null: what its type calls for.
  ValueRules (*value_rules)(const Tensor& tensor, const Part& part) = nullptr;

  // Are the elements real floating-point numbers that elements() makes? Null: no.
  bool (*has_float_elements)(const Tensor& tensor) = nullptr;
  // The type of what elements() makes. Null: f32.
  DType (*element_type)(const Tensor& tensor) = nullptr;
  // All elements in row-major order, computed when they are read. Null: there are none to be had. Requires:
  // has_float_elements(tensor), or a layout whose elements may be of any type.
  BlobPtr (*elements)(const Tensor& tensor) = nullptr;

  // How the elements are stored, in the words of StoredType: "bf16", "group4:128". Null: the layout's name.
  std::string (*stored_type)(const Tensor& tensor) = nullptr;
  // Is the tensor stored as `type` already? Null: no.
  bool (*is_stored_as)(const Tensor& tensor, const StoredType& type) = nullptr;

  // Of two tensors of this layout and of one shape: do equal bytes in all parts mean equal elements? Null: yes.
  bool (*same_scheme)(const Tensor& a, const Tensor& b) = nullptr;
  // Is this one of the attributes that spell the scheme? Null: no.
  bool (*spells_scheme)(std::string_view attribute) = nullptr;
  // What the type of a part means for the elements, where several types mean the same. Nothing, or null: itself.
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
extern const LayoutType blocks;  // ggml's, under many names
extern const LayoutType other;   // carried only

}  // namespace layouts

// The rows, but for `other`.
std::span<const LayoutType* const> layout_types();

const LayoutType& layout_type(const TensorLayout& layout);

// What check() throws: invalid_file (without path), naming the tensor.
[[noreturn]] void fail_parts(const Tensor& tensor, std::string_view problem);
// The part data; fails where there is none.
const Part& require_data(const Tensor& tensor);

// What tensors of that type are stored in.
const LayoutType& layout_type(const StoredType& type);

}  // namespace poise
