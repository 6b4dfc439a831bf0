// Decodes MX tensors (see tensor/mx_scheme.hpp) when they are read.
#include "views/mx.hpp"

#include <array>
#include <utility>
#include <vector>

#include "io/threads.hpp"
#include "numeric/float_formats.hpp"
#include "tensor/block_layout.hpp"
#include "tensor/mx_scheme.hpp"
#include "tensor/part_types.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr float kIntegerUnit = 0x1p-6F;

class MxBlob final : public FloatBlob {
 public:
  explicit MxBlob(const Tensor& tensor)
      : FloatBlob(tensor.elements()), data_(tensor.require("data")), scales_(tensor.require("scales").blob) {
    check_mx_parts(tensor);
    const MxScheme scheme = *get_mx_scheme(tensor.layout);
    block_size_ = scheme.block_size;
    along_ = tensor.shape[scheme.axis];
    for (std::size_t d = scheme.axis + 1; d < tensor.shape.size(); ++d) stride_ *= tensor.shape[d];
    for (std::uint32_t code = 0; code < factors_.size(); ++code) factors_[code] = decode_float(DType::f8_e8m0, code);
    if (data_.dtype != DType::i8)
      data_.blob = make_cast_blob(tensor.name, data_.blob, data_.dtype, tensor.elements(), DType::f32);
  }

  bool seekable() const override { return data_.blob->seekable(); }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    const auto scales = kept_.get([this] { return std::make_shared<const LoadedBlob>(scales_); });
    if (data_.dtype == DType::i8) {
      read_integers(first, out);
    } else {
      data_.blob->read(first * sizeof(float), std::as_writable_bytes(out));
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] *= factors_[std::to_integer<std::size_t>(
          scales->bytes()[static_cast<std::size_t>(find_scale_index(first + i))])];
  }
  void drop_caches() const override { kept_.release(); }

 private:
  void read_integers(std::uint64_t first, std::span<float> out) const {
    std::array<std::int8_t, kBlockSize> integers;
    data_.blob->read(first, std::as_writable_bytes(std::span(integers).first(out.size())));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(integers[i]) * kIntegerUnit;
  }

  std::uint64_t find_scale_index(std::uint64_t element) const {
    const std::uint64_t inner = element % stride_;
    const std::uint64_t middle = element / stride_ % along_;
    const std::uint64_t outer = element / stride_ / along_;
    return (outer * (along_ / block_size_) + middle / block_size_) * stride_ + inner;
  }

  Part data_;  // integers, or numbers as float32
  BlobPtr scales_;
  std::uint64_t block_size_ = 0;
  std::uint64_t along_ = 0;
  std::uint64_t stride_ = 1;
  std::array<float, 256> factors_{};
  LazyValue<const LoadedBlob> kept_;
};

std::optional<TensorLayout> read_mx(const Tensor& tensor, std::string_view name) {
  if (name != kMxLayout) return std::nullopt;
  return read_mx_layout(tensor);
}

BlobPtr make_mx_elements(const Tensor& tensor) { return std::make_shared<MxBlob>(tensor); }

bool have_same_mx_scheme(const Tensor& a, const Tensor& b) {
  return *get_mx_scheme(a.layout) == *get_mx_scheme(b.layout);
}

constexpr std::size_t kCodes = 16;  // bytes of a block's codes
constexpr std::size_t kBlockBytes = kCodes + 1;
constexpr std::size_t kBlocksAtOnce = 512;

std::byte get_low_half(std::byte pair) { return pair & std::byte{15}; }
std::byte get_high_half(std::byte pair) { return pair >> 4; }

void reorder_for_ggml(const std::byte* by_turns, std::byte* out) {
  for (std::size_t i = 0; i < kCodes / 2; ++i) {
    const std::byte first = by_turns[i];
    const std::byte second = by_turns[kCodes / 2 + i];
    out[2 * i] = get_low_half(first) | get_low_half(second) << 4;
    out[2 * i + 1] = get_high_half(first) | (second & std::byte{0xf0});
  }
}

void reorder_for_gpt_oss(const std::byte* halves, std::byte* out) {
  for (std::size_t i = 0; i < kCodes / 2; ++i) {
    const std::byte even = halves[2 * i];
    const std::byte odd = halves[2 * i + 1];
    out[i] = get_low_half(even) | get_low_half(odd) << 4;
    out[kCodes / 2 + i] = get_high_half(even) | (odd & std::byte{0xf0});
  }
}

class BlocksBlob final : public Blob {
 public:
  BlocksBlob(BlobPtr codes, BlobPtr scales) : codes_(std::move(codes)), scales_(std::move(scales)) {}

  std::uint64_t size() const override { return scales_->size() * kBlockBytes; }
  bool seekable() const override { return codes_->seekable() && scales_->seekable(); }
  bool decodable() const override { return codes_->decodable() && scales_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> codes;
    std::vector<std::byte> scales;
    std::vector<std::byte> made;
    read_units(offset, out, kBlockBytes, kBlocksAtOnce, [&](std::uint64_t first, std::size_t count) {
      made.resize(count * kBlockBytes);
      codes.resize(count * kCodes);
      scales.resize(count);
      codes_->read(first * kCodes, codes);
      scales_->read(first, scales);
      for (std::size_t i = 0; i < count; ++i) {
        made[i * kBlockBytes] = scales[i];
        reorder_for_ggml(codes.data() + i * kCodes, made.data() + i * kBlockBytes + 1);
      }
      return std::span(made);
    });
  }

 private:
  BlobPtr codes_;
  BlobPtr scales_;
};

class MxCodesBlob final : public Blob {
 public:
  explicit MxCodesBlob(BlobPtr blocks) : blocks_(std::move(blocks)) {}

  std::uint64_t size() const override { return blocks_->size() / kBlockBytes * kCodes; }
  bool seekable() const override { return blocks_->seekable(); }
  bool decodable() const override { return blocks_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> blocks;
    std::vector<std::byte> made;
    read_units(offset, out, kCodes, kBlocksAtOnce, [&](std::uint64_t first, std::size_t count) {
      made.resize(count * kCodes);
      blocks.resize(count * kBlockBytes);
      blocks_->read(first * kBlockBytes, blocks);
      for (std::size_t i = 0; i < count; ++i)
        reorder_for_gpt_oss(blocks.data() + i * kBlockBytes + 1, made.data() + i * kCodes);
      return std::span(made);
    });
  }

 private:
  BlobPtr blocks_;
};

}  // namespace

const LayoutType layouts::mx = {
    .name = kMxLayout,
    .quantized = true,
    .read = read_mx,
    .check = check_mx_parts,
    .needs_known_parts = true,
    .has_float_elements = has_known_types,
    .elements = make_mx_elements,
    .same_scheme = have_same_mx_scheme,
    .is_scheme_attribute = is_mx_scheme_attribute,
};

bool is_mxfp4(const Tensor& tensor) {
  const MxScheme* scheme = get_mx_scheme(tensor.layout);
  return scheme != nullptr && scheme->axis + 1 == tensor.shape.size() && scheme->block_size == kMxfp4Block &&
         tensor.require("data").dtype == DType::f4_e2m1;
}

Tensor make_mxfp4(std::string name, Shape shape, BlobPtr codes, BlobPtr scales) {
  Tensor tensor;
  tensor.name = std::move(name);
  const MxScheme scheme = {.axis = shape.size() - 1, .block_size = kMxfp4Block};
  tensor.layout = make_mx_layout(scheme);
  tensor.attributes = make_mx_attributes(scheme);
  tensor.shape = std::move(shape);
  tensor.parts.push_back({.role = "data", .dtype = DType::f4_e2m1, .blob = std::move(codes)});
  tensor.parts.push_back({.role = "scales", .dtype = DType::f8_e8m0, .blob = std::move(scales)});
  return tensor;
}

Tensor convert_mxfp4_to_blocks(const Tensor& tensor) {
  return make_blocks(tensor.name, tensor.shape, *find_named_block_type("mxfp4"),
                     make_mxfp4_blocks(tensor.require("data").blob, tensor.require("scales").blob));
}

Tensor convert_blocks_to_mxfp4(const Tensor& blocks) {
  const BlobPtr data = blocks.require("data").blob;
  return make_mxfp4(blocks.name, blocks.shape, extract_mxfp4_codes(data), extract_mxfp4_scales(data));
}

bool is_mxfp4_blocks(const Tensor& tensor) {
  const BlockType* type = get_block_type(tensor.layout);
  return type != nullptr && type->name == "mxfp4" && get_block_direction(tensor.layout) == BlocksAlong::rows;
}

BlobPtr make_mxfp4_blocks(BlobPtr codes, BlobPtr scales) {
  return std::make_shared<BlocksBlob>(std::move(codes), std::move(scales));
}

BlobPtr extract_mxfp4_codes(BlobPtr blocks) { return std::make_shared<MxCodesBlob>(std::move(blocks)); }

BlobPtr extract_mxfp4_scales(BlobPtr blocks) {
  const std::uint64_t count = blocks->size() / kBlockBytes;
  return make_strided_blob(std::move(blocks), {.shape = {count}, .strides = {kBlockBytes}, .item_bytes = 1});
}

}  // namespace poise
