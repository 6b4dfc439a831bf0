// Checks the rules of zTensor 2's layouts, and converts between stored tensors and Poise's.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt2.hpp"
#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "tensor/part_types.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kCsr = "zt.sparse_csr/1";
constexpr std::string_view kCoo = "zt.sparse_coo/1";

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", tensor.name, tensor.layout.name(), problem));
}

std::uint64_t read_unsigned_attribute(const Tensor& tensor, std::string_view key) {
  const Value* value = tensor.attributes.find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  if (number == nullptr)
    fail(tensor, fmt::format("attribute {}: expected an unsigned integer, found {}", key, format_found_value(value)));
  return *number;
}

void require_size(const Tensor& tensor, const Part& part, std::optional<std::uint64_t> bytes) {
  if (!bytes) fail(tensor, fmt::format("{}: its size does not fit 64 bits", part.role));
  if (*bytes != part.blob->size())
    fail(tensor, fmt::format("{}: expected {} bytes, found {}", part.role, *bytes, part.blob->size()));
}

void check_dense(const Tensor& tensor) {
  if (tensor.parts.size() != 1 || tensor.parts[0].role != "data")
    fail(tensor, "the layout dense needs the part data, and no other part");
  check_parts(tensor);
}

// Checks the parts, and that indices are plain u32 or u64, all of one type.
void check_sparse(const Tensor& tensor) {
  DType index = DType::unknown;
  for (const Part& part : tensor.parts) {
    if (part.role == "values") continue;
    if (part.dtype != DType::u32 && part.dtype != DType::u64)
      fail(tensor, fmt::format("{}: expected u32 or u64, found {}", part.role, part.type_name()));
    if (index != DType::unknown && part.dtype != index)
      fail(tensor, fmt::format("{}: expected {} as in the other indices, found {}", part.role, to_string(index),
                               part.type_name()));
    index = part.dtype;
  }
  check_parts(tensor);
}

constexpr std::string_view kBlockElements = "elems_per_block";
constexpr std::string_view kBlockBytes = "block_bytes";

// Checks a tensor of ggml's blocks, also if Poise does not know the block type: the attributes have a block's size.
void check_gguf_blocks(const Tensor& tensor) {
  require_roles(tensor, {"data"});
  const Part& data = tensor.require("data");
  if (data.dtype != DType::u8) fail(tensor, fmt::format("data: expected u8, found {}", data.type_name()));
  const std::uint64_t elements = read_unsigned_attribute(tensor, kBlockElements);
  const std::uint64_t bytes = read_unsigned_attribute(tensor, kBlockBytes);
  if (elements == 0 || tensor.elements() % elements != 0)
    fail(tensor, fmt::format("attribute elems_per_block: {} does not divide {} elements", elements, tensor.elements()));
  if (bytes == 0) fail(tensor, "attribute block_bytes: expected 1 or more, found 0");
  require_size(tensor, data, checked_mul(tensor.elements() / elements, bytes));
}

// Sets the layout of a tensor whose block type is known, and removes the attributes with a block's size. Throws
// invalid_file if they contradict the type.
void set_block_layout(Tensor& tensor, TensorLayout layout) {
  check_gguf_blocks(tensor);
  const BlockType& type = *get_block_type(layout);
  const std::uint64_t elements = read_unsigned_attribute(tensor, kBlockElements);
  const std::uint64_t bytes = read_unsigned_attribute(tensor, kBlockBytes);
  if (elements != type.elements || bytes != type.bytes) {
    fail(tensor, fmt::format("attributes elems_per_block and block_bytes: expected {} and {} for {}, found {} and {}",
                             type.elements, type.bytes, type.name, elements, bytes));
  }
  tensor.layout = std::move(layout);
  tensor.attributes.erase(kBlockElements);
  tensor.attributes.erase(kBlockBytes);
}

bool is_gguf_layout(std::string_view layout) { return layout.starts_with("gguf.") && layout.ends_with("/1"); }

Value describe_zero_point(const GroupScheme& scheme) {
  switch (scheme.zeros) {
    case GroupScheme::Zeros::none: return Attributes{{"form", "none"}};
    case GroupScheme::Zeros::fixed: return Attributes{{"form", "implied"}, {"value", scheme.zero}};
    case GroupScheme::Zeros::plain: return Attributes{{"form", "tensor"}, {"packing", "plain"}};
    case GroupScheme::Zeros::packed: return Attributes{{"form", "tensor"}, {"packing", "same_as_data"}};
  }
  return {};
}

std::string_view get_word_name(DType word) {
  switch (info(word).bits) {
    case 8: return "u8";
    case 16: return "u16";
    case 32: return "u32";
    default: return "u64";
  }
}

std::string_view get_scale_form_name(const GroupScheme& scheme, const Part& scales) {
  if (scheme.power_of_two) return "e8m0_exponent";
  return scales.dtype == DType::f16 || scales.dtype == DType::bf16 ? "f16_factors" : "f32_factors";
}

// Returns the tensor's attributes, with those of zt.quant_group/1 for its groups. Attributes that do not describe the
// groups stay. Throws unsupported for groups that version 2 cannot describe.
Attributes make_group_attributes(const Tensor& tensor) {
  const auto refuse = [&](std::string_view problem) {
    Error error(ErrorKind::unsupported, fmt::format("zTensor 2 cannot hold {}: {}", tensor.name, problem));
    if (has_float_elements(tensor)) error = std::move(error).with({.kind = Remedy::Kind::dtype, .value = "f32"});
    throw std::move(error).with({.kind = Remedy::Kind::skip, .tensor = tensor.name});
  };
  const Value* packing = tensor.attributes.find("packing");
  if (packing != nullptr && packing->get_if<Attributes>() != nullptr)
    return tensor.attributes;  // the attributes have that form already
  if (get_group_scheme(tensor.layout) == nullptr) refuse("a type of its parts is not known");
  const GroupScheme& scheme = *get_group_scheme(tensor.layout);
  if (scheme.packing_axis + 1 != tensor.shape.size()) refuse("its codes are not packed along the last axis");
  if (scheme.per_word * scheme.bits != info(scheme.word).bits)
    refuse(fmt::format("{} codes of {} bits leave bits of a word unused", scheme.per_word, scheme.bits));
  if (scheme.bits == 1 || scheme.bits == 7)
    refuse(fmt::format("the format has no codes of {}", format_count(scheme.bits, "bit")));
  Attributes attributes = tensor.attributes;
  attributes.set("axis", scheme.axis);
  attributes.set("packing", Attributes{{"word", get_word_name(scheme.word)},
                                       {"order", scheme.high_bits_first ? "msb_first" : "lsb_first"},
                                       {"per_word", std::uint64_t{scheme.per_word}}});
  attributes.set("scale_form", get_scale_form_name(scheme, tensor.require("scales")));
  attributes.set("zero_point", describe_zero_point(scheme));
  return attributes;
}

// Sets the storage type and the logical type of a part. ManifestParser2 spells an unknown type with the storage type in
// front, such as "u8:type". Unknown types from other formats become logical types with storage type u8. Throws
// unsupported if version 2 has no type for the part.
void set_stored_types(const Tensor& tensor, const Part& part, StoredPart& stored) {
  if (part.dtype == DType::unknown) {
    const std::string_view spelled = part.type_name();
    const auto colon = spelled.find(':');
    const bool is_storage = colon != std::string_view::npos && find_stored_dtype(spelled.substr(0, colon), "");
    stored.dtype = is_storage ? spelled.substr(0, colon) : "u8";
    stored.type = is_storage ? spelled.substr(colon + 1) : spelled;
  } else {
    const StorageType type = find_spelling(kSpellings2, part.dtype).value_or(StorageType());
    stored.dtype = type.storage;
    stored.type = type.logical;
  }
  if (stored.dtype.empty() || (stored.type.empty() && part.dtype == DType::unknown))
    throw Error(ErrorKind::unsupported,
                fmt::format("zTensor 2 has no element type for {}: {} ({})", tensor.name, part.role, part.type_name()));
}

// Holds a layout whose name in version 2 differs from Poise's name.
struct Identifier {
  const LayoutType* type;
  std::string_view id;
};
constexpr std::array kIdentifiers = {Identifier{&layouts::sparse_csr, kCsr}, Identifier{&layouts::sparse_coo, kCoo},
                                     Identifier{&layouts::groups, kQuantGroup}};

// Returns the layout with that name in version 2; null for names of blocks, of affine codes, and of unknown layouts.
const LayoutType* find_layout(std::string_view id) {
  const auto* const renamed = std::ranges::find(kIdentifiers, id, &Identifier::id);
  if (renamed != kIdentifiers.end()) return renamed->type;
  for (const LayoutType* type : list_layout_types()) {
    if (type->name != id || type == &layouts::affine || type == &layouts::blocks) continue;
    return std::ranges::find(kIdentifiers, type, &Identifier::type) == kIdentifiers.end() ? type : nullptr;
  }
  return nullptr;
}

std::string find_layout_id(const Tensor& tensor) {
  const auto* const found = std::ranges::find(kIdentifiers, &find_layout_type(tensor.layout), &Identifier::type);
  const std::string_view id = found != kIdentifiers.end() ? found->id : tensor.layout.name();
  if (!id.empty()) return std::string(id);
  throw Error(ErrorKind::unsupported, fmt::format("zTensor 2 cannot hold {}: its layout has no name", tensor.name));
}

// Throws unsupported if Poise would reject the tensor when it reads the file again: version 2 may define a layout or a
// type that is unknown in the version of the original file.
void require_readable_again(const StoredTensor& stored) {
  Tensor reread;
  reread.name = stored.name;
  reread.shape = stored.shape;
  reread.attributes = stored.attributes;
  for (const StoredPart& part : stored.parts) {
    const DType dtype = find_stored_dtype(part.dtype, part.type).value_or(DType::unknown);
    reread.parts.push_back({.role = part.role,
                            .dtype = dtype,
                            .spelling = choose_spelling(dtype, dtype == DType::unknown ? part.type : to_string(dtype)),
                            .blob = part.blob});
  }
  try {
    convert_from_stored2(reread, stored.layout);
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported, fmt::format("zTensor 2 cannot hold {}: {}", stored.name, error.message()))
        .with({.kind = Remedy::Kind::skip, .tensor = stored.name});
  }
}

// Changes the role of the codes from data to packed_weight, and returns the scheme of the groups; std::nullopt if a
// part's type is not known. Throws invalid_file for invalid attributes, and for a part that is called packed_weight in
// the file.
std::optional<GroupScheme> read_stored_groups(Tensor& tensor) {
  if (tensor.part("packed_weight") != nullptr) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("tensor {}: {}: this layout has no part packed_weight: codes are called data", tensor.name,
                            kQuantGroup));
  }
  for (Part& part : tensor.parts) {
    if (part.role == "data") part.role = "packed_weight";
  }
  if (!has_known_types(tensor)) return std::nullopt;
  return read_group_scheme(tensor, GroupWords::zt2);
}

}  // namespace

void check_layout2(const Tensor& tensor) {
  const LayoutType& type = find_layout_type(tensor.layout);
  if (&type == &layouts::dense) return check_dense(tensor);
  if (is_sparse(tensor)) return check_sparse(tensor);
  if (&type == &layouts::groups) return check_parts(tensor);  // its scheme is unknown if a type is
  if (type.check != nullptr) return type.check(tensor);       // also checks the roles of parts with unknown types
  if (is_gguf_layout(tensor.layout.name())) return check_gguf_blocks(tensor);
}

bool is_known_layout2(std::string_view layout) {
  return find_layout(layout) != nullptr || layout == kAffineLayout || find_block_layout(layout);
}

void convert_from_stored2(Tensor& tensor, std::string_view layout) {
  const LayoutType* const type = find_layout(layout);
  if (type == &layouts::sparse_csr || type == &layouts::sparse_coo) {
    tensor.layout = TensorLayout::Sparse{type == &layouts::sparse_csr ? Layout::sparse_csr : Layout::sparse_coo, true};
  } else if (type == &layouts::groups) {
    tensor.layout = make_group_layout(read_stored_groups(tensor));
  } else if (type != nullptr) {
    tensor.layout = type->read(tensor, layout).value();
  } else {
    tensor.layout = TensorLayout::other(std::string(layout));
    if (auto blocks = find_block_layout(layout)) set_block_layout(tensor, std::move(*blocks));
  }
  check_layout2(tensor);
  if (has_known_types(tensor)) convert_from_stored_affine(tensor);
}

std::string_view find_stored_role2(const Tensor& tensor, const Part& part) {
  return tensor.layout == Layout::quantized_group && part.role == "packed_weight" ? std::string_view("data")
                                                                                  : part.role;
}

StoredTensor convert_to_stored2(const Tensor& original) {
  const Tensor tensor = original.layout == Layout::affine ? convert_to_stored_affine(original) : original;
  StoredTensor stored{tensor.name, tensor.shape, find_layout_id(tensor), tensor.attributes, {}};
  if (tensor.layout == Layout::quantized_group) stored.attributes = make_group_attributes(tensor);
  if (const BlockType* blocks = get_block_type(tensor.layout)) {
    stored.attributes.set(std::string(kBlockElements), std::uint64_t{blocks->elements});
    stored.attributes.set(std::string(kBlockBytes), std::uint64_t{blocks->bytes});
  }
  const bool sparse = is_sparse(tensor);
  const bool narrow = std::ranges::all_of(
      tensor.parts, [](const Part& part) { return part.role == "values" || part.dtype == DType::u32; });
  for (const Part& part : tensor.parts) {
    if (tensor.layout == Layout::dense && part.role != "data") continue;  // prepare_file() reports the loss
    StoredPart& target = stored.parts.emplace_back();
    target.role = find_stored_role2(tensor, part);
    target.blob = part.blob;
    target.digest = part.digest;
    set_stored_types(tensor, part, target);
    if (sparse && part.role != "values" && !narrow && part.dtype != DType::u64) {
      target.dtype = "u64";
      target.blob = widen_indices(tensor.name, part);
      target.digest.reset();
    }
  }
  std::ranges::sort(stored.parts, {}, &StoredPart::role);
  require_readable_again(stored);
  return stored;
}

}  // namespace poise::ztensor
