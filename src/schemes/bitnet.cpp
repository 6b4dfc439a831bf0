// Reads BitNet b1.58, as transformers stores it. A matrix [out, in] has these parts:
//
//   weight         u8 [out / 4, in], four codes of 2 bits a byte: a byte in row r has, from its low bits on, the codes
//                  of the rows r, r + out / 4, r + out / 2 and r + 3 out / 4 in the same column
//   weight_scale   one number
//
// value = (code - 1) * weight_scale with linear_class "autobitlinear", (code - 1) / weight_scale with "bitlinear", the
// default. Source: pack_weights(), BitLinear and AutoBitLinear of transformers' integrations/bitnet.py.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "schemes/make_tensors.hpp"
#include "views/strided.hpp"

namespace poise::schemes::bitnet {
namespace {

constexpr std::array<std::string_view, 1> kParts = {".weight"};
constexpr std::array<DType, 1> kCodes = {DType::u8};
constexpr unsigned kPerByte = 4;

// Converts the codes to row-major order: a byte of the result has four neighbours in a row, from its low bits on.
class RowsBlob final : public Blob {
 public:
  // Requires: `columns` is a positive multiple of 4; the blob has whole rows.
  RowsBlob(BlobPtr packed, std::uint64_t columns) : packed_(std::move(packed)), columns_(columns) {}

  std::uint64_t size() const override { return packed_->size(); }
  bool seekable() const override { return packed_->seekable(); }
  bool decodable() const override { return packed_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::byte, 4096> piece;
    const std::uint64_t row_bytes = columns_ / kPerByte;
    const std::uint64_t packed_rows = packed_->size() / columns_;
    while (!out.empty()) {
      const std::uint64_t row = offset / row_bytes;
      const std::uint64_t column = offset % row_bytes * kPerByte;
      const auto count = static_cast<std::size_t>(
          std::min<std::uint64_t>({out.size(), (columns_ - column) / kPerByte, piece.size() / kPerByte}));
      const std::span<std::byte> bytes = std::span(piece).first(count * kPerByte);
      packed_->read(row % packed_rows * columns_ + column, bytes);
      const auto shift = static_cast<int>(row / packed_rows * 2);
      for (std::size_t i = 0; i < count; ++i) {
        std::byte codes{0};
        for (unsigned k = 0; k < kPerByte; ++k)
          codes |= (bytes[i * kPerByte + k] >> shift & std::byte{3}) << static_cast<int>(2 * k);
        out[i] = codes;
      }
      out = out.subspan(count);
      offset += count;
    }
  }

 private:
  BlobPtr packed_;
  std::uint64_t columns_;
};

bool multiplies_by_scale(const QuantizationConfig& config) {
  const std::string name = config.read_text("linear_class").value_or("bitlinear");
  if (name != "autobitlinear" && name != "bitlinear")
    throw Error(
        ErrorKind::unsupported,
        fmt::format("quantization_config: linear_class is {}, only bitlinear and autobitlinear are supported", name));
  return name == "autobitlinear";
}

void require_known_variant(const QuantizationConfig& config) { (void)multiplies_by_scale(config); }

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const Tensor& weight = matrix.require(".weight");
  const Part& codes = matrix.require_data(weight, {DType::u8});
  matrix.require_rank(weight, 2);
  const std::uint64_t columns = weight.shape[1];
  const auto rows = checked_mul(weight.shape[0], kPerByte);
  if (!rows || *rows == 0 || columns == 0) matrix.fail(fmt::format("{} has no elements", weight.name));
  if (columns % kPerByte != 0)
    matrix.fail(fmt::format("{} has {} columns, expected a multiple of {}", weight.name, columns, kPerByte));
  const Tensor& scale = matrix.require(".weight_scale");
  matrix.require_data(scale, kScaleTypes);
  if (scale.elements() != 1)
    matrix.fail(fmt::format("the shape of {} is {}, expected one number", scale.name, to_string(scale.shape)));
  const float stored = read_scalar(scale);
  const float factor = multiplies_by_scale(config) ? stored : 1 / stored;
  if (!std::isfinite(stored) || !std::isfinite(factor))
    matrix.fail(fmt::format("{} is {}, which is not a scale", scale.name, stored));
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof(float)>>(factor);
  BlobPtr scales = make_strided_blob(make_memory_blob({bytes.begin(), bytes.end()}, scale.name),
                                     {.shape = {*rows}, .strides = {0}, .item_bytes = sizeof(float)});
  return make_group_tensor(matrix, {.shape = {*rows, columns},
                                    .bits = 2,
                                    .group_size = columns,
                                    .codes = std::make_shared<RowsBlob>(codes.blob, columns),
                                    .scales = make_part("scales", DType::f32, std::move(scales)),
                                    .zeros = make_part("zeros", DType::f16, repeat_f16(1, *rows))});
}

}  // namespace

const QuantizationScheme kBitNet = {
    .title = "BitNet",
    .method = "bitnet",
    .require_known_variant = require_known_variant,
    .marker = ".weight_scale",
    .parts = kParts,
    .code_types = kCodes,
    .fold = fold,
};

}  // namespace poise::schemes::bitnet
