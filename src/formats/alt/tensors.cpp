// Reads the tensors section. Derives the roles, the canonical order and the hints of tensors from their names
// (sections.hpp).
//
// Version 2:
//   i64 tensor_count, i64 shape_count (the sum of n_dims), i32 block_count (layers),
//   i32 unique_count (tensors outside layers)
//   per tensor:
//     i32 component_type, block_index, layer_type, projection_type   hints, which repeat parts of the name
//     i32 n_dims, i32 dimension[n_dims]
//     text name
//     i32 data_type        0 float32, 1 float16, 2 qint8, 3 qint4, 4 bfloat16
//     f32 delta, min, max  zeros unless the tensor is quantized
//     i8  packing_flag     1: a qint4 tensor has two codes in a byte
//     data                 without padding
//
// Version 1:
//   i64 tensor_count, i64 shape_count
//   per tensor:
//     i32 n_dims, i32 name_length, i32 data_type (0 float32, 1 float16, 2 int8), i32 dimension[n_dims], name, data
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "family/tensor_table.hpp"
#include "formats/alt/sections.hpp"
#include "model/limits.hpp"

namespace poise::alt {
namespace {

// These are lower bounds of a tensor's bytes: its fields if it has no dimensions and an empty name, without the data.
constexpr std::uint64_t kLeastBytesV2 = 16 + 4 + 4 + 4 + 12 + 1;
constexpr std::uint64_t kLeastBytesV1 = 4 + 4 + 4;

// Returns true for +0 and false for -0, because writers store only +0.
bool is_positive_zero(float number) { return number == 0 && !std::signbit(number); }

// Returns a tensor's name for a message: a file may have names of any length.
std::string shorten_name(std::string_view name) { return shorten(name, 100); }

// Reads the fields that both versions have: counts, shapes and data.
class TensorsReader {
 public:
  TensorsReader(FileReader& reader, SourcePtr source, Model& model)
      : reader_(reader), bytes_(reader.bytes()), source_(std::move(source)), model_(model), begin_(bytes_.position()) {}

 protected:
  void read_counts() {
    tensor_count_ = reader_.read_count64("tensor_count");
    shape_count_ = reader_.read_count64("shape_count");
  }

  // Calls `read_tensor` for each tensor. First throws invalid_file for a tensor_count that the remaining bytes cannot
  // hold, with at least `least_bytes` for each tensor.
  template <typename ReadTensor>
  void read_tensors(std::uint64_t least_bytes, ReadTensor&& read_tensor) {
    read_each_tensor(least_bytes, read_tensor);
    warn_of_wrong_order();
  }

  // Returns the offset of each tensor, in the order of the file.
  const std::vector<std::uint64_t>& places() const { return places_; }

  std::int32_t read_rank() {
    const std::uint64_t at = bytes_.position();
    const std::int32_t rank = reader_.read_count32("n_dims");
    if (static_cast<std::uint64_t>(rank) > kMaxRank)
      bytes_.fail("n_dims", fmt::format("expected at most {}, found {}", kMaxRank, rank), at);
    dimensions_ += rank;
    return rank;
  }

  Shape read_shape(std::int32_t rank) {
    Shape shape;
    for (std::int32_t i = 0; i < rank; ++i)
      shape.push_back(static_cast<std::uint64_t>(reader_.read_count32("dimension")));
    return shape;
  }

  void require_new_name(const std::string& name, std::uint64_t at) const {
    if (model_.find(name) != nullptr) bytes_.fail("name", fmt::format("\"{}\" appears twice", shorten_name(name)), at);
  }

  // Adds the tensor's only part, with elements of type `dtype`. In the file an element is as large as one of type
  // `code`: qint8 if qint4 codes are not packed, else `dtype`. An error about a size that overflows has offset `at`.
  void read_data(Tensor& tensor, DType dtype, DType code, std::uint64_t at) {
    const auto elements = element_count(tensor.shape);
    const auto size = elements ? packed_bytes(code, *elements) : std::nullopt;
    if (!size) bytes_.fail("dimension", fmt::format("{} overflows 64 bits", to_string(tensor.shape)), at);
    const std::uint64_t begin = bytes_.position();
    bytes_.skip(*size, "data");
    BlobPtr blob = make_source_blob(source_, begin, *size);
    tensor.parts.push_back({.role = "data", .dtype = dtype, .blob = std::move(blob)});
  }

  FileReader& reader_;
  ByteReader& bytes_;
  SourcePtr source_;
  Model& model_;
  std::uint64_t begin_;

 private:
  template <typename ReadTensor>
  void read_each_tensor(std::uint64_t least_bytes, ReadTensor&& read_tensor) {
    if (static_cast<std::uint64_t>(tensor_count_) > kMaxTensors)
      bytes_.fail("tensor_count", fmt::format("{} tensors, at most {} are allowed", tensor_count_, kMaxTensors),
                  begin_);
    if (static_cast<std::uint64_t>(tensor_count_) > bytes_.remaining() / least_bytes) {
      bytes_.fail("tensor_count",
                  fmt::format("{} tensors need at least {} bytes each, {} bytes are left", tensor_count_, least_bytes,
                              bytes_.remaining()),
                  begin_);
    }
    for (std::int64_t i = 0; i < tensor_count_; ++i) {
      const auto scope = bytes_.open_scope("tensor", i);
      places_.push_back(bytes_.position());
      read_tensor();
    }
    if (dimensions_ != shape_count_) {
      bytes_.fail("shape_count", fmt::format("the tensors have {} dimensions, found {}", dimensions_, shape_count_),
                  begin_ + 8);
    }
  }

  // Warns only of the first tensor that is not in canonical order, because one misplaced tensor shifts many others.
  void warn_of_wrong_order() {
    const std::vector<const Tensor*> order = list_in_canonical_order(model_);
    std::size_t i = 0;
    for (const Tensor& found : model_.tensors()) {
      if (order[i] != &found)
        return reader_.warn("order",
                            fmt::format("expected {} as tensor {}, found {}", shorten_name(order[i]->name), i,
                                        shorten_name(found.name)),
                            places_[i]);
      ++i;
    }
  }

  std::int64_t tensor_count_ = 0;
  std::int64_t shape_count_ = 0;
  std::int64_t dimensions_ = 0;
  std::vector<std::uint64_t> places_;
};

class ReaderV2 : private TensorsReader {
 public:
  using TensorsReader::TensorsReader;

  void read() {
    read_counts();
    BlockCounts counts;
    counts.blocks = reader_.read_count32("block_count");
    counts.unique = reader_.read_count32("unique_count");
    read_tensors(kLeastBytesV2, [&] { read_tensor(); });
    check_block_counts(counts);
    warn_of_wrong_hints();
  }

 private:
  void read_tensor() {
    Hints hints;
    hints.component_type = bytes_.read_i32("component_type");
    hints.block_index = bytes_.read_i32("block_index");
    hints.layer_type = bytes_.read_i32("layer_type");
    hints.projection_type = bytes_.read_i32("projection_type");
    Tensor tensor;
    tensor.shape = read_shape(read_rank());
    const std::uint64_t name_at = bytes_.position();
    tensor.name = reader_.read_text("name");
    require_new_name(tensor.name, name_at);
    hints_.push_back(hints);
    read_typed_data(tensor);
    model_.add(std::move(tensor));
  }

  void read_typed_data(Tensor& tensor) {
    const std::uint64_t at = bytes_.position();
    const std::int32_t code = bytes_.read_i32("data_type");
    const auto dtype = find_spelled_dtype(kCodes, code);
    if (!dtype) bytes_.fail("data_type", fmt::format("expected 0 to 4, found {}", code), at);
    const std::uint64_t scale_at = bytes_.position();
    const Affine affine = read_affine(*dtype);
    const bool byte_each = *dtype == DType::qint4 && !affine.packed;
    read_data(tensor, *dtype, byte_each ? DType::qint8 : *dtype, at);
    if (poise::info(*dtype).kind != DTypeKind::quantized) return;
    tensor.layout = make_affine(affine, scale_at);
  }

  Affine read_affine(DType dtype) {
    const std::uint64_t at = bytes_.position();
    Affine affine;
    affine.delta = bytes_.read_f32("delta");
    affine.min = bytes_.read_f32("min");
    affine.max = bytes_.read_f32("max");
    const std::uint64_t flag_at = bytes_.position();
    affine.packed = reader_.read_flag("packing_flag");
    if (poise::info(dtype).kind == DTypeKind::quantized) normalize_range(affine, at + 4);
    if (!affine.packed && dtype == DType::qint4) reader_.warn("packing_flag", "expected 1 for qint4, found 0", flag_at);
    if (affine.packed && dtype != DType::qint4) {
      reader_.warn("packing_flag", fmt::format("expected 0 for {}, found 1", to_string(dtype)), flag_at);
      affine.packed = false;
    }
    if (poise::info(dtype).kind != DTypeKind::quantized &&
        !(is_positive_zero(affine.delta) && is_positive_zero(affine.min) && is_positive_zero(affine.max))) {
      reader_.warn("delta",
                   fmt::format("expected delta, min and max of 0 for {}, found {}, {} and {}", to_string(dtype),
                               affine.delta, affine.min, affine.max),
                   at);
    }
    return affine;
  }

  // Throws invalid_file if min is above max. If they are equal, codes are symmetric: sets both to +0, with a warning
  // unless they are +0 already. `at` is the offset of min.
  void normalize_range(Affine& affine, std::uint64_t at) {
    if (affine.min > affine.max)
      bytes_.fail("min", fmt::format("expected at most the max, which is {}, found {}", affine.max, affine.min), at);
    if (affine.min != affine.max || (is_positive_zero(affine.min) && is_positive_zero(affine.max))) return;
    reader_.warn("min",
                 fmt::format("expected min and max of 0 for symmetric codes, found {} and {}", affine.min, affine.max),
                 at);
    affine.min = affine.max = 0;
  }

  // Warns about hints that differ from those that make_hints() derives from the tensor's name. Poise follows the name.
  void warn_of_wrong_hints() {
    std::size_t i = 0;
    std::int32_t other_block = kFirstOtherBlock;  // of the next tensor whose component is `other`: -4, -5, ...
    for (const Tensor& tensor : model_.tensors()) {
      const auto scope = bytes_.open_scope("tensor", static_cast<std::int64_t>(i));
      const AltRole role = find_alt_role(tensor.name);
      warn_unless_equal(make_hints(role, other_block), hints_[i], tensor.name, places()[i]);
      if (role.component == ComponentType::other) --other_block;
      ++i;
    }
  }

  void warn_unless_equal(const Hints& expected, const Hints& found, const std::string& name, std::uint64_t at) {
    const auto warn_if_different = [&](std::string_view label, std::int32_t named, std::int32_t hinted,
                                       std::uint64_t offset) {
      if (named != hinted)
        reader_.warn(label, fmt::format("expected {} for {}, found {}", named, shorten_name(name), hinted),
                     at + offset);
    };
    warn_if_different("component_type", expected.component_type, found.component_type, 0);
    warn_if_different("block_index", expected.block_index, found.block_index, 4);
    warn_if_different("layer_type", expected.layer_type, found.layer_type, 8);
    warn_if_different("projection_type", expected.projection_type, found.projection_type, 12);
  }

  BlockCounts count_hinted_blocks() const {
    std::set<std::int32_t> blocks;
    BlockCounts counts;
    for (const Hints& hints : hints_) {
      if (hints.block_index >= 0) {
        blocks.insert(hints.block_index);
      } else {
        ++counts.unique;
      }
    }
    counts.blocks = static_cast<std::int64_t>(blocks.size());
    return counts;
  }

  // Throws invalid_file if the counts fit neither the tensors' names nor their hints. Warns if they fit only the hints.
  void check_block_counts(const BlockCounts& found) {
    const BlockCounts named = count_blocks(model_);
    if (found == named) return;
    const std::string blocks = fmt::format("the tensors belong to {} layers, found {}", named.blocks, found.blocks);
    const std::string unique = fmt::format("{} tensors are outside the layers, found {}", named.unique, found.unique);
    if (found == count_hinted_blocks()) {
      if (found.blocks != named.blocks) reader_.warn("block_count", blocks, begin_ + 16);
      if (found.unique != named.unique) reader_.warn("unique_count", unique, begin_ + 20);
      return;
    }
    if (found.blocks != named.blocks) bytes_.fail("block_count", blocks, begin_ + 16);
    bytes_.fail("unique_count", unique, begin_ + 20);
  }

  std::vector<Hints> hints_;
};

class ReaderV1 : private TensorsReader {
 public:
  using TensorsReader::TensorsReader;

  void read() {
    read_counts();
    read_tensors(kLeastBytesV1, [&] { read_tensor(); });
  }

 private:
  void read_tensor() {
    const std::int32_t rank = read_rank();
    const std::int32_t name_length = reader_.read_count32("name_length");
    const std::uint64_t type_at = bytes_.position();
    const DType dtype = read_dtype();
    Tensor tensor;
    tensor.shape = read_shape(rank);
    const std::uint64_t name_at = bytes_.position();
    tensor.name = reader_.read_text(name_length, "name");
    require_new_name(tensor.name, name_at);
    read_data(tensor, dtype, dtype, type_at);
    model_.add(std::move(tensor));
  }

  // Reads an element type. Version 1 has no scales, so type 2, which ALT calls qint8, is plain i8.
  DType read_dtype() {
    const std::uint64_t at = bytes_.position();
    switch (const std::int32_t code = bytes_.read_i32("data_type")) {
      case 0: return DType::f32;
      case 1: return DType::f16;
      case 2: return DType::i8;
      default: bytes_.fail("data_type", fmt::format("expected 0 to 2, found {}", code), at);
    }
  }
};

}  // namespace

void read_tensors_v2(FileReader& reader, const SourcePtr& source, Model& model) {
  ReaderV2(reader, source, model).read();
}
void read_tensors_v1(FileReader& reader, const SourcePtr& source, Model& model) {
  ReaderV1(reader, source, model).read();
}

namespace {

// Describes a tensor of a layer. kLayerTensors lists a layer's tensors in canonical order.
struct LayerTensor {
  std::string_view name;  // the part of the name after "model.layers.N."
  LayerPart layer;
  ProjectionType projection;
};

constexpr std::array<LayerTensor, 9> kLayerTensors = {{
    {"input_layernorm.weight", LayerPart::input_layernorm, ProjectionType::none},
    {"self_attn.q_proj.weight", LayerPart::self_attn, ProjectionType::q_proj},
    {"self_attn.k_proj.weight", LayerPart::self_attn, ProjectionType::k_proj},
    {"self_attn.v_proj.weight", LayerPart::self_attn, ProjectionType::v_proj},
    {"self_attn.o_proj.weight", LayerPart::self_attn, ProjectionType::o_proj},
    {"post_attention_layernorm.weight", LayerPart::post_attention_layernorm, ProjectionType::none},
    {"mlp.gate_proj.weight", LayerPart::mlp, ProjectionType::gate_proj},
    {"mlp.up_proj.weight", LayerPart::mlp, ProjectionType::up_proj},
    {"mlp.down_proj.weight", LayerPart::mlp, ProjectionType::down_proj},
}};

constexpr std::string_view kLayerPrefix = "model.layers.";

AltRole find_layer_role(std::string_view numbered) {
  AltRole role;
  const auto split = split_number(numbered);
  if (!split) return role;
  role.component = ComponentType::layers;
  role.block = split->number;
  for (const LayerTensor& row : kLayerTensors) {
    if (row.name == split->rest) {
      role.layer = row.layer;
      role.projection = row.projection;
    }
  }
  return role;
}

int find_place_in_layer(const AltRole& role) {
  const auto row = std::find_if(kLayerTensors.begin(), kLayerTensors.end(), [&](const LayerTensor& tensor) {
    return tensor.layer == role.layer && tensor.projection == role.projection;
  });
  return static_cast<int>(row - kLayerTensors.begin());
}

// Sorts tensors into canonical order: (the component's place, the layer's number, the place in the layer).
using CanonicalKey = std::tuple<int, std::int32_t, int>;

CanonicalKey make_canonical_key(std::string_view name) {
  const AltRole role = find_alt_role(name);
  if (!role.is_known()) return {4, 0, 0};
  switch (role.component) {
    case ComponentType::embed_tokens: return {0, 0, 0};
    case ComponentType::layers: return {1, role.block, find_place_in_layer(role)};
    case ComponentType::norm: return {2, 0, 0};
    case ComponentType::lm_head: return {3, 0, 0};
    case ComponentType::other: break;
  }
  return {4, 0, 0};
}

}  // namespace

bool AltRole::is_known() const { return component != ComponentType::other && layer != LayerPart::other; }

AltRole find_alt_role(std::string_view name) {
  if (name == "model.embed_tokens.weight")
    return {ComponentType::embed_tokens, -1, LayerPart::weight, ProjectionType::none};
  if (name == "lm_head.weight") return {ComponentType::lm_head, -1, LayerPart::weight, ProjectionType::none};
  if (name == "model.norm.weight") return {ComponentType::norm, -1, LayerPart::weight, ProjectionType::none};
  if (name.starts_with(kLayerPrefix)) return find_layer_role(name.substr(kLayerPrefix.size()));
  return {};
}

std::vector<const Tensor*> list_in_canonical_order(const Model& model) {
  std::vector<std::pair<CanonicalKey, const Tensor*>> keyed;
  for (const Tensor& tensor : model.tensors()) keyed.emplace_back(make_canonical_key(tensor.name), &tensor);
  std::ranges::stable_sort(keyed, {}, [](const auto& item) { return item.first; });
  std::vector<const Tensor*> tensors;
  tensors.reserve(keyed.size());
  for (const auto& [key, tensor] : keyed) tensors.push_back(tensor);
  return tensors;
}

namespace {

std::int32_t find_block_index(const AltRole& role, std::int32_t other_block) {
  switch (role.component) {
    case ComponentType::layers: return role.block;
    case ComponentType::embed_tokens: return -1;
    case ComponentType::lm_head: return -2;
    case ComponentType::norm: return -3;
    case ComponentType::other: break;
  }
  return other_block;
}

}  // namespace

Hints make_hints(const AltRole& role, std::int32_t other_block) {
  return {static_cast<std::int32_t>(role.component), find_block_index(role, other_block),
          static_cast<std::int32_t>(role.layer), static_cast<std::int32_t>(role.projection)};
}

bool is_outside_layers(const AltRole& role) { return role.component != ComponentType::layers; }

BlockCounts count_blocks(const Model& model) {
  std::set<std::int32_t> blocks;
  BlockCounts counts;
  for (const Tensor& tensor : model.tensors()) {
    const AltRole role = find_alt_role(tensor.name);
    if (is_outside_layers(role)) {
      ++counts.unique;
    } else {
      blocks.insert(role.block);
    }
  }
  counts.blocks = static_cast<std::int64_t>(blocks.size());
  return counts;
}

}  // namespace poise::alt
