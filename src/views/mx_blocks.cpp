#include "views/mx_blocks.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tensor/block_layout.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr std::size_t kCodes = 16;  // bytes of a block's codes
constexpr std::size_t kBlockBytes = kCodes + 1;
constexpr std::size_t kBlocksAtOnce = 512;

using Codes = std::array<std::byte, kCodes>;

std::byte low(std::byte pair) { return pair & std::byte{15}; }
std::byte high(std::byte pair) { return pair >> 4; }

void to_halves(const std::byte* by_turns, std::byte* out) {
  for (std::size_t i = 0; i < kCodes / 2; ++i) {
    const std::byte first = by_turns[i];
    const std::byte second = by_turns[kCodes / 2 + i];
    out[2 * i] = low(first) | low(second) << 4;
    out[2 * i + 1] = high(first) | (second & std::byte{0xf0});
  }
}

void to_turns(const std::byte* halves, std::byte* out) {
  for (std::size_t i = 0; i < kCodes / 2; ++i) {
    const std::byte even = halves[2 * i];
    const std::byte odd = halves[2 * i + 1];
    out[i] = low(even) | low(odd) << 4;
    out[kCodes / 2 + i] = high(even) | (odd & std::byte{0xf0});
  }
}

// Pieces of `piece` bytes, several made at a time.
template <typename Make>
void read_pieces(std::uint64_t offset, std::span<std::byte> out, std::size_t piece, const Make& make) {
  std::vector<std::byte> made(std::min<std::size_t>(kBlocksAtOnce, out.size() / piece + 2) * piece);
  while (!out.empty()) {
    const auto skipped = static_cast<std::size_t>(offset % piece);
    const std::size_t pieces = std::min(made.size() / piece, (skipped + out.size() + piece - 1) / piece);
    make(offset / piece, pieces, made.data());
    const std::size_t bytes = std::min(out.size(), pieces * piece - skipped);
    std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(skipped), bytes, out.begin());
    offset += bytes;
    out = out.subspan(bytes);
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
    read_pieces(offset, out, kBlockBytes, [&](std::uint64_t first, std::size_t count, std::byte* to) {
      codes.resize(count * kCodes);
      scales.resize(count);
      codes_->read(first * kCodes, codes);
      scales_->read(first, scales);
      for (std::size_t i = 0; i < count; ++i) {
        to[i * kBlockBytes] = scales[i];
        to_halves(codes.data() + i * kCodes, to + i * kBlockBytes + 1);
      }
    });
  }

 private:
  BlobPtr codes_;
  BlobPtr scales_;
};

class CodesBlob final : public Blob {
 public:
  explicit CodesBlob(BlobPtr blocks) : blocks_(std::move(blocks)) {}

  std::uint64_t size() const override { return blocks_->size() / kBlockBytes * kCodes; }
  bool seekable() const override { return blocks_->seekable(); }
  bool decodable() const override { return blocks_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> blocks;
    read_pieces(offset, out, kCodes, [&](std::uint64_t first, std::size_t count, std::byte* to) {
      blocks.resize(count * kBlockBytes);
      blocks_->read(first * kBlockBytes, blocks);
      for (std::size_t i = 0; i < count; ++i) to_turns(blocks.data() + i * kBlockBytes + 1, to + i * kCodes);
    });
  }

 private:
  BlobPtr blocks_;
};

}  // namespace

bool is_mxfp4(const Tensor& tensor) {
  const MxScheme* scheme = mx_scheme(tensor.layout);
  return scheme != nullptr && scheme->axis + 1 == tensor.shape.size() && scheme->block_size == kMxfp4Block &&
         tensor.require("data").dtype == DType::f4_e2m1;
}

Tensor make_mxfp4(std::string name, Shape shape, BlobPtr codes, BlobPtr scales) {
  Tensor tensor;
  tensor.name = std::move(name);
  const MxScheme scheme = {.axis = shape.size() - 1, .block_size = kMxfp4Block};
  tensor.layout = mx_layout(scheme);
  tensor.attributes = mx_attributes(scheme);
  tensor.shape = std::move(shape);
  tensor.parts.push_back({.role = "data", .dtype = DType::f4_e2m1, .blob = std::move(codes)});
  tensor.parts.push_back({.role = "scales", .dtype = DType::f8_e8m0, .blob = std::move(scales)});
  return tensor;
}

Tensor mxfp4_as_blocks(const Tensor& tensor) {
  return make_blocks(tensor.name, tensor.shape, *block_type_named("mxfp4"),
                     make_mxfp4_blocks(tensor.require("data").blob, tensor.require("scales").blob));
}

Tensor blocks_as_mxfp4(const Tensor& blocks) {
  const BlobPtr data = blocks.require("data").blob;
  return make_mxfp4(blocks.name, blocks.shape, mxfp4_codes(data), mxfp4_scales(data));
}

bool is_mxfp4_blocks(const Tensor& tensor) {
  const BlockType* type = block_type(tensor.layout);
  return type != nullptr && type->name == "mxfp4" && blocks_along(tensor.layout) == BlocksAlong::rows;
}

BlobPtr make_mxfp4_blocks(BlobPtr codes, BlobPtr scales) {
  return std::make_shared<BlocksBlob>(std::move(codes), std::move(scales));
}

BlobPtr mxfp4_codes(BlobPtr blocks) { return std::make_shared<CodesBlob>(std::move(blocks)); }

BlobPtr mxfp4_scales(BlobPtr blocks) {
  const std::uint64_t count = blocks->size() / kBlockBytes;
  return make_strided_blob(std::move(blocks), {.shape = {count}, .strides = {kBlockBytes}, .item_bytes = 1});
}

}  // namespace poise
