#include "views/packed_codes.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "bytes/little_endian.hpp"
#include "io/lazy_value.hpp"
#include "numeric/float_formats.hpp"
#include "views/block_size.hpp"
#include "views/loaded_blob.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kWordBytes = 4;

std::uint64_t row_bytes(const PackedCodes& codes) {
  return codes.row_bytes != 0 ? codes.row_bytes : codes.columns * codes.bits / 8;
}

// Reads the codes of a matrix, one at a time.
class Codes {
 public:
  Codes(PackedCodes codes, MatrixOrder order) : codes_(std::move(codes)), order_(order), loaded_(codes_.words) {}

  // Of elements that are neighbours in row-major order.
  void copy(std::uint64_t first, std::span<std::uint8_t> out) const {
    const bool transposed = order_ == MatrixOrder::transposed;
    const std::uint64_t width = transposed ? codes_.rows : codes_.columns;
    std::uint64_t row = first / width;
    std::uint64_t column = first % width;
    for (std::uint8_t& code : out) {
      code = transposed ? at(column, row) : at(row, column);
      if (++column == width) {
        column = 0;
        ++row;
      }
    }
  }

 private:
  std::uint8_t at(std::uint64_t row, std::uint64_t column) const {
    const bool in_rows = codes_.along == PackedCodes::Along::rows;
    std::uint64_t place = in_rows ? column : row;
    if (!codes_.order.empty()) {
      const std::size_t count = codes_.order.size();
      place = place / count * count + codes_.order[static_cast<std::size_t>(place % count)];
    }
    const std::uint64_t bit = codes_.per_word == 0
                                  ? place * codes_.bits
                                  : place / codes_.per_word * 32 + place % codes_.per_word * codes_.bits;
    const unsigned low = byte(row, column, bit / 8);
    const unsigned high = byte(row, column, (bit + codes_.bits - 1) / 8);
    const unsigned code = (low | high << 8U) >> bit % 8;
    // A code within one byte reads that byte twice; the mask drops what is above it.
    return static_cast<std::uint8_t>((code + codes_.add) & ((1U << codes_.bits) - 1));
  }

  // A byte of the stream of that row or column.
  unsigned byte(std::uint64_t row, std::uint64_t column, std::uint64_t index) const {
    const std::uint64_t at = codes_.along == PackedCodes::Along::rows
                                 ? row * row_bytes(codes_) + index
                                 : (index / kWordBytes * codes_.columns + column) * kWordBytes + index % kWordBytes;
    return std::to_integer<unsigned>(loaded_.bytes()[static_cast<std::size_t>(at)]);
  }

  PackedCodes codes_;
  MatrixOrder order_;
  LoadedBlob loaded_;
};

// Codes in `bits` bits each, or as float16 numbers.
class CodesBlob final : public Blob {
 public:
  static constexpr unsigned kNumbers = 16;

  CodesBlob(PackedCodes codes, MatrixOrder order, unsigned bits)
      : codes_(std::move(codes)), order_(order), bits_(bits) {
    const std::uint64_t count = codes_.rows * codes_.columns;
    size_ = bits == kNumbers ? 2 * count : (count * bits + 7) / 8;
    if (bits != kNumbers) return;
    for (unsigned code = 0; code < 256; ++code) numbers_.push_back(encode_f16(code));
  }

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const auto codes = kept_.get([this] { return std::make_shared<const Codes>(codes_, order_); });
    const bool is_last = offset + out.size() == size_;
    while (!out.empty()) {
      const std::size_t count = std::min(out.size(), kBlockSize);
      bits_ == kNumbers ? make_numbers(*codes, offset, out.first(count)) : pack(*codes, offset, out.first(count));
      offset += count;
      out = out.subspan(count);
    }
    if (is_last) kept_.release();
  }

 private:
  void pack(const Codes& codes, std::uint64_t offset, std::span<std::byte> out) const {
    const unsigned per_byte = 8 / bits_;
    const std::uint64_t first = offset * per_byte;
    const std::uint64_t left = codes_.rows * codes_.columns - first;
    std::vector<std::uint8_t> values(out.size() * per_byte, 0);
    codes.copy(first, std::span(values).first(static_cast<std::size_t>(std::min<std::uint64_t>(left, values.size()))));
    for (std::size_t i = 0; i < out.size(); ++i) {
      unsigned packed = 0;
      for (unsigned j = 0; j < per_byte; ++j) packed |= unsigned{values[i * per_byte + j]} << bits_ * j;
      out[i] = static_cast<std::byte>(packed);
    }
  }

  void make_numbers(const Codes& codes, std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint64_t first = offset / 2;
    std::vector<std::uint8_t> values(static_cast<std::size_t>((offset + out.size() + 1) / 2 - first));
    codes.copy(first, values);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t at = offset + i;
      const unsigned number = numbers_[values[static_cast<std::size_t>(at / 2 - first)]];
      out[i] = static_cast<std::byte>(number >> 8 * (at % 2) & 0xffU);
    }
  }

  PackedCodes codes_;
  MatrixOrder order_;
  unsigned bits_;
  std::uint64_t size_ = 0;
  std::vector<std::uint16_t> numbers_;  // the codes as float16
  LazyValue<const Codes> kept_;
};

}  // namespace

BlobPtr make_codes_blob(const PackedCodes& codes, MatrixOrder order, unsigned bits) {
  return std::make_shared<CodesBlob>(codes, order, bits);
}

BlobPtr make_code_numbers_blob(const PackedCodes& codes, MatrixOrder order) {
  return std::make_shared<CodesBlob>(codes, order, CodesBlob::kNumbers);
}

}  // namespace poise
