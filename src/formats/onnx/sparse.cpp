// Reads a SparseTensorProto: 1 values, 2 indices, 3 dims. The values are a TensorProto of one dimension; the indices
// are one with a number for each value, or a row of coordinates. Source: onnx/onnx.proto of github.com/onnx/onnx.
#include <fmt/format.h>

#include "bytes/little_endian.hpp"
#include "formats/onnx/onnx.hpp"
#include "views/sparse.hpp"
#include "views/strided.hpp"

namespace poise::onnx {
namespace {

constexpr std::uint64_t kIndexBytes = sizeof(std::int64_t);

// Converts numbers of cells in row-major order to coordinates, all of dimension 0 first. A number outside of the shape
// becomes a coordinate outside.
class UnravelledBlob final : public Blob {
 public:
  UnravelledBlob(BlobPtr cells, Shape shape) : cells_(std::move(cells)), shape_(std::move(shape)) {
    strides_.assign(shape_.size(), 1);
    for (std::size_t d = shape_.size() - 1; d > 0; --d)
      strides_[d - 1] = strides_[d] * std::max<std::uint64_t>(1, shape_[d]);
  }

  std::uint64_t size() const override { return cells_->size() * shape_.size(); }
  std::uint64_t grain() const override { return kIndexBytes; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    constexpr std::uint64_t kMostBytes = 64 << 10;
    std::vector<std::byte> cells;
    while (!out.empty()) {
      const std::uint64_t d = offset / cells_->size();
      const std::uint64_t inside = offset % cells_->size();
      const std::uint64_t begin = inside / kIndexBytes * kIndexBytes;
      const std::uint64_t wanted = std::min<std::uint64_t>({out.size(), cells_->size() - inside, kMostBytes});
      const std::uint64_t end = (inside + wanted + kIndexBytes - 1) / kIndexBytes * kIndexBytes;
      cells.resize(end - begin);
      cells_->read(begin, cells);
      for (std::size_t at = 0; at < cells.size(); at += kIndexBytes)
        store_le(&cells[at], compute_coordinate(load_le<std::int64_t>(&cells[at]), d));
      std::copy_n(cells.begin() + static_cast<std::ptrdiff_t>(inside - begin), wanted, out.begin());
      out = out.subspan(wanted);
      offset += wanted;
    }
  }

 private:
  std::int64_t compute_coordinate(std::int64_t cell, std::size_t d) const {
    if (cell < 0) return cell;
    const std::uint64_t index = static_cast<std::uint64_t>(cell) / strides_[d];
    return static_cast<std::int64_t>(d == 0 ? index : index % std::max<std::uint64_t>(1, shape_[d]));
  }

  BlobPtr cells_;
  Shape shape_;
  std::vector<std::uint64_t> strides_;
};

BlobPtr make_coordinates(const Tensor& indices, const Shape& shape, std::uint64_t count) {
  const BlobPtr blob = indices.require("data").blob;
  if (indices.require("data").dtype != DType::i64) fail("indices: expected INT64");
  if (indices.shape == Shape{count}) {
    if (shape.size() == 1 || count == 0) return blob;
    // Decodes a list of integers once, because each dimension would decode it again from its beginning.
    return std::make_shared<UnravelledBlob>(blob->seekable() ? blob : make_memory_blob(read_all(*blob), "indices"),
                                            shape);
  }
  if (indices.shape != Shape{count, shape.size()})
    fail(fmt::format("indices: expected the shape [{}] or [{}, {}], found {}", count, count, shape.size(),
                     to_string(indices.shape)));
  const auto rank = static_cast<std::int64_t>(shape.size() * kIndexBytes);
  return make_strided_blob(blob,
                           {.shape = {shape.size(), count}, .strides = {kIndexBytes, rank}, .item_bytes = kIndexBytes});
}

}  // namespace

SparseProto read_sparse_proto(Message message) {
  SparseProto proto;
  proto.values.at = proto.indices.at = message.field_offset();
  while (message.next()) {
    switch (message.number()) {
      case 1: proto.values = read_tensor_proto(message.read_message("values", "values")); break;
      case 2: proto.indices = read_tensor_proto(message.read_message("indices", "indices")); break;
      case 3: read_dims(message, proto.dims); break;
      default: break;
    }
  }
  return proto;
}

Tensor make_sparse(const SparseProto& proto, const SourcePtr& source, ExternalFiles& files) {
  if (!element_count(proto.dims)) fail(fmt::format("dims: {} has more than 2^64 elements", to_string(proto.dims)));
  if (proto.dims.empty()) fail("dims: expected at least one dimension, found none");
  if (proto.values.type == kText) fail("values: texts are not numbers");
  const Tensor values = make_tensor(proto.values, source, files);
  if (values.shape.size() != 1) fail(fmt::format("values: expected one dimension, found {}", to_string(values.shape)));
  Tensor tensor;
  tensor.name = values.name;
  tensor.shape = proto.dims;
  tensor.parts.push_back({.role = "values", .dtype = values.parts[0].dtype, .blob = values.parts[0].blob});
  if (proto.indices.type == kText) fail("indices: expected INT64");
  tensor.parts.push_back(
      {.role = "coords",
       .dtype = DType::i64,
       .blob = make_coordinates(make_tensor(proto.indices, source, files), proto.dims, values.shape[0])});
  tensor.layout = TensorLayout::Sparse{Layout::sparse_coo, false};
  if (const auto fault = find_sparse_structure_fault(tensor)) fail(*fault);
  return tensor;
}

}  // namespace poise::onnx
