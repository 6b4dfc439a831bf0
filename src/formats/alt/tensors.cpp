// The tensors section of ALT v2:
//
//   i64 tensor_count, i64 shape_count (dimensions of all tensors), i32 block_count (layers), i32 unique_count (the others)
//   per tensor:
//     i32 component_type, block_index, layer_type, projection_type   hints: the name decides
//     i32 n_dims, i32 dimension[n_dims]
//     text name
//     i32 data_type        0 float32, 1 float16, 2 qint8, 3 qint4, 4 bfloat16
//     f32 delta, min, max  of quantized tensors, else 0
//     i8  packing_flag     1: a qint4 tensor has two codes in a byte
//     data                 at any address
#include "formats/alt/tensors.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "formats/alt/hints.hpp"

namespace poise::alt {
namespace {

constexpr std::uint64_t kLeastTensorBytes = 4 * 4 + 4 + 4 + 4 + 3 * 4 + 1;

struct Counts {
  std::uint64_t at = 0;  // offset of tensor_count
  std::int64_t tensors = 0;
  std::int64_t dimensions = 0;
  BlockCounts blocks;
};

class TensorsReader {
 public:
  TensorsReader(FileReader& reader, SourcePtr source, Model& model) : reader_(reader), bytes_(reader.bytes()), source_(std::move(source)), model_(model) {}

  void read() {
    Counts counts;
    counts.at = bytes_.position();
    counts.tensors = reader_.count64("tensor_count");
    counts.dimensions = reader_.count64("shape_count");
    counts.blocks.blocks = reader_.count32("block_count");
    counts.blocks.unique = reader_.count32("unique_count");
    if (static_cast<std::uint64_t>(counts.tensors) > bytes_.remaining() / kLeastTensorBytes) {
      bytes_.fail("tensor_count",
                  fmt::format("{} tensors need at least {} bytes each, {} bytes are left", counts.tensors, kLeastTensorBytes, bytes_.remaining()), counts.at);
    }
    for (std::int64_t i = 0; i < counts.tensors; ++i) {
      const auto scope = bytes_.scope("tensor", i);
      read_tensor();
    }
    check(counts);
  }

 private:
  void read_tensor() {
    const std::uint64_t begin = bytes_.position();
    Hints hints;
    hints.component_type = bytes_.i32("component_type");
    hints.block_index = bytes_.i32("block_index");
    hints.layer_type = bytes_.i32("layer_type");
    hints.projection_type = bytes_.i32("projection_type");
    Tensor tensor;
    tensor.shape = shape();
    const std::uint64_t name_at = bytes_.position();
    tensor.name = reader_.text("name");
    if (model_.find(tensor.name) != nullptr) bytes_.fail("name", fmt::format("\"{}\" stands twice", tensor.name), name_at);
    compare(hints, tensor.name, begin);
    note_block(hints);
    data(tensor);
    model_.add(std::move(tensor));
  }

  Shape shape() {
    const std::uint64_t at = bytes_.position();
    const std::int32_t rank = reader_.count32("n_dims");
    if (static_cast<std::uint64_t>(rank) > kMaxRank) bytes_.fail("n_dims", fmt::format("expected at most {}, found {}", kMaxRank, rank), at);
    dimensions_ += rank;
    Shape shape;
    for (std::int32_t i = 0; i < rank; ++i) shape.push_back(static_cast<std::uint64_t>(reader_.count32("shape")));
    return shape;
  }

  void data(Tensor& tensor) {
    const std::uint64_t type_at = bytes_.position();
    const std::int32_t code = bytes_.i32("data_type");
    const auto dtype = dtype_from_code(code);
    if (!dtype) bytes_.fail("data_type", fmt::format("expected 0 to 4, found {}", code), type_at);
    Affine affine;
    affine.delta = bytes_.f32("delta");
    affine.min = bytes_.f32("min");
    affine.max = bytes_.f32("max");
    const std::uint64_t flag_at = bytes_.position();
    affine.packed = reader_.flag("packing_flag");
    const bool quantized = poise::info(*dtype).kind == DTypeKind::quantized;
    if (affine.packed && *dtype != DType::qint4) {
      reader_.warn("packing_flag", fmt::format("expected 0 for {}, found 1", to_string(*dtype)), flag_at);
      affine.packed = false;
    }
    if (!quantized && !(affine == Affine{}))
      reader_.warn("delta", fmt::format("delta, min and max are set, but {} has no scale", to_string(*dtype)), type_at + 4);
    const std::uint64_t size = data_bytes(tensor, *dtype, affine, type_at);
    const std::uint64_t begin = bytes_.position();
    bytes_.skip(size, "data");
    tensor.parts.push_back(
        {.role = "data", .dtype = *dtype, .dtype_name = std::string(to_string(*dtype)), .blob = make_source_blob(source_, begin, size), .digest = {}});
    if (quantized) {
      tensor.layout = Layout::affine;
      tensor.affine = make_affine(affine);
    }
  }

  std::uint64_t data_bytes(const Tensor& tensor, DType dtype, const Affine& affine, std::uint64_t at) const {
    const bool byte_each = dtype == DType::qint4 && !affine.packed;
    const auto elements = element_count(tensor.shape);
    const auto size = elements ? packed_bytes(byte_each ? DType::qint8 : dtype, *elements) : std::nullopt;
    if (!size) bytes_.fail("shape", fmt::format("{} overflows 64 bits", to_string(tensor.shape)), at);
    return *size;
  }

  // The name decides; numbers that disagree with it are noted. Of a name that says nothing, any numbers are accepted.
  void compare(const Hints& hints, const std::string& name, std::uint64_t at) {
    const TensorRole role = role_from_name(name);
    if (role.component == Component::other) return;
    const Hints expected = hints_from_role(role, hints.block_index);
    const auto field = [&](std::string_view label, std::int32_t said, std::int32_t found, std::uint64_t offset) {
      if (said != found) reader_.warn(label, fmt::format("{} has {}, found {}", name, said, found), at + offset);
    };
    field("component_type", expected.component_type, hints.component_type, 0);
    field("block_index", expected.block_index, hints.block_index, 4);
    if (!role.known()) return;
    field("layer_type", expected.layer_type, hints.layer_type, 8);
    field("projection_type", expected.projection_type, hints.projection_type, 12);
  }

  void note_block(const Hints& hints) {
    if (hints.block_index >= 0) {
      hinted_blocks_.insert(hints.block_index);
    } else {
      ++hinted_unique_;
    }
  }

  // Blocks are counted by the names or, for names that Poise does not know, by the hints.
  void check(const Counts& counts) const {
    if (dimensions_ != counts.dimensions) {
      bytes_.fail("shape_count", fmt::format("the tensors have {} dimensions, found {}", dimensions_, counts.dimensions), counts.at + 8);
    }
    const BlockCounts named = count_blocks(model_);
    const BlockCounts hinted{static_cast<std::int64_t>(hinted_blocks_.size()), hinted_unique_};
    if (counts.blocks == named || counts.blocks == hinted) return;
    if (counts.blocks.blocks != named.blocks) {
      bytes_.fail("block_count", fmt::format("the tensors belong to {} layers, found {}", named.blocks, counts.blocks.blocks), counts.at + 16);
    }
    bytes_.fail("unique_count", fmt::format("{} tensors stand outside the layers, found {}", named.unique, counts.blocks.unique), counts.at + 20);
  }

  FileReader& reader_;
  ByteReader& bytes_;
  SourcePtr source_;
  Model& model_;
  std::int64_t dimensions_ = 0;
  std::set<std::int32_t> hinted_blocks_;
  std::int64_t hinted_unique_ = 0;
};

}  // namespace

void read_tensors_v2(FileReader& reader, const SourcePtr& source, Model& model) { TensorsReader(reader, source, model).read(); }

}  // namespace poise::alt
