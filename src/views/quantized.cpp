#include <algorithm>

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <poise/values.hpp>

#include "bytes/checked.hpp"
#include "codec/affine.hpp"
#include "codec/block_type.hpp"
#include "io/meter.hpp"
#include "io/read_fully.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/quantize.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kPieceBytes = 64 << 10;  // bytes of codes that a thread makes at once

// Why rows do not fit blocks of the type; empty if they do.
std::string row_fault(const Shape& shape, const BlockType& type) {
  if (shape.empty()) return "it has no rows, and blocks are made of them";
  if (shape.back() % type.elements == 0) return {};
  return fmt::format("its rows of {} elements are not whole blocks of {}, which {} has", shape.back(), type.elements,
                     type.name);
}

// All bytes, made on all processors if the blob is seekable.
BlobPtr in_memory(const Blob& blob, const std::string& name, Meter& meter) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(blob.size()));
  if (!blob.seekable() || bytes.empty()) {
    read_fully(*blob.stream(), bytes);
  } else {
    const std::uint64_t grain = blob.grain();
    const std::uint64_t piece = std::max<std::uint64_t>(1, kPieceBytes / grain) * grain;
    const std::uint64_t pieces = (bytes.size() + piece - 1) / piece;
    tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, pieces), [&](const auto& range) {
      const std::uint64_t begin = range.begin() * piece;
      const std::uint64_t end = std::min<std::uint64_t>(bytes.size(), range.end() * piece);
      blob.read(begin,
                std::span(bytes).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      meter.advance(end - begin, name);
    });
  }
  return make_memory_blob(std::move(bytes), name);
}

}  // namespace

Tensor quantized(const Tensor& tensor, const StoredType& type, const Progress& progress) {
  const auto refuse = [&](ErrorKind kind, const std::string& why) {
    throw Error(kind, fmt::format("tensor {}: {}", tensor.name, why));
  };
  if (!type.quantized()) refuse(ErrorKind::bad_argument, fmt::format("{} has no codes", to_string(type)));
  if (!has_float_elements(tensor))
    refuse(ErrorKind::unsupported,
           fmt::format("its elements, stored as {}, are not read as floating-point numbers", storage_name(tensor)));
  if (const BlockType* blocks = block_type(type)) {
    if (blocks->encode == nullptr)
      refuse(ErrorKind::bad_argument, fmt::format("{} is read, not made", to_string(type)));
    if (const std::string fault = row_fault(tensor.shape, *blocks); !fault.empty())
      refuse(ErrorKind::unsupported, fault);
  }
  if (type.grouped() && tensor.shape.empty())
    refuse(ErrorKind::unsupported, "it has no rows, and groups are parts of them");
  Tensor codes = quantize(tensor, type);
  std::uint64_t total = 0;
  for (const Part& part : codes.parts) total += part.blob->size();
  Meter meter(progress, total);
  for (Part& part : codes.parts) part.blob = in_memory(*part.blob, tensor.name, meter);
  if (const AffineSource* scale = codes.layout.affine()) codes.layout = make_affine(scale->get());
  return codes;
}

Tensor make_block_tensor(std::string name, Shape shape, std::string_view type, std::vector<std::byte> blocks) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::bad_argument, fmt::format("tensor {}: {}", name, why));
  };
  const BlockType* const blocks_type = block_type_named(type);
  if (blocks_type == nullptr) refuse(fmt::format("\"{}\" is not a type of blocks", type));
  if (const std::string fault = row_fault(shape, *blocks_type); !fault.empty()) refuse(fault);
  const auto elements = element_count(shape);
  const auto bytes = elements ? checked_mul(*elements / blocks_type->elements, blocks_type->bytes) : std::nullopt;
  if (bytes != blocks.size()) refuse(fmt::format("{} bytes for {} {}", blocks.size(), type, to_string(shape)));
  BlobPtr data = make_memory_blob(std::move(blocks), name);
  return make_blocks(std::move(name), std::move(shape), *blocks_type, std::move(data));
}

}  // namespace poise
