#include "views/dense.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/scan.hpp"

namespace poise {
namespace {

void widen_f8(DType dtype, const std::byte* in, std::span<float> out) {
  std::array<float, 256> table{};
  for (std::uint32_t code = 0; code < table.size(); ++code) table[code] = decode_float(dtype, code);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = table[std::to_integer<std::size_t>(in[i])];
}

void widen_f4(const std::byte* in, std::span<float> out, std::uint64_t first) {
  std::array<float, 16> table{};
  for (std::uint32_t code = 0; code < table.size(); ++code) table[code] = decode_float(DType::f4_e2m1, code);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto codes = std::to_integer<unsigned>(in[(first + i) / 2]);
    out[i] = table[(first + i) % 2 == 0 ? codes & 15 : codes >> 4];
  }
}

// Returns the byte in which an element begins.
std::uint64_t locate_byte(std::uint64_t element, unsigned bits) {
  return bits < 8 ? element / (8 / bits) : element * (bits / 8);
}

class CastBlob final : public LossyBlob<CastStats> {
 public:
  CastBlob(std::string name, BlobPtr data, DType from, std::uint64_t elements, DType to)
      : name_(std::move(name)),
        data_(std::move(data)),
        from_(from),
        to_(to),
        from_bits_(info(from).bits),
        to_bytes_(info(to).bits / 8),
        elements_(elements) {}

  std::uint64_t size() const override { return elements_ * to_bytes_; }
  bool seekable() const override { return data_->seekable(); }

  void read_measured(std::uint64_t offset, std::span<std::byte> out, CastStats* loss) const override {
    CastStats ignored;
    CastStats& stats = loss != nullptr ? *loss : ignored;
    if (const auto all = data_->map(); all && can_widen_whole(offset, out))
      return widen_mapped(*all, offset, out, loss);
    Block block(*this, loss != nullptr);
    read_units(offset, out, to_bytes_, kBlockSize,
               [&](std::uint64_t first, std::size_t count) { return block.convert_block(first, count, stats); });
  }

 private:
  // Returns the index of an element within its byte.
  std::uint64_t find_place_in_byte(std::uint64_t element) const {
    return from_bits_ < 8 ? element % (8 / from_bits_) : 0;
  }

  // Returns true if elements can be widened straight into `out`: the cast is to float32 from a type that fits it, and
  // `out` is aligned and has whole numbers.
  bool can_widen_whole(std::uint64_t offset, std::span<std::byte> out) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(out.data()) % alignof(float) == 0;
    return to_ == DType::f32 && can_widen(from_) && aligned && offset % sizeof(float) == 0 &&
           out.size() % sizeof(float) == 0;
  }

  void widen_mapped(std::span<const std::byte> all, std::uint64_t offset, std::span<std::byte> out,
                    CastStats* loss) const {
    const std::size_t count = out.size() / sizeof(float);
    const std::uint64_t first = offset / sizeof(float);
    if (loss != nullptr) {
      loss->values += count;  // the cast is exact
      loss->not_finite += count_not_finite(all.data() + locate_byte(first, from_bits_), count);
    }
    widen(from_, all.data() + locate_byte(first, from_bits_), std::span(reinterpret_cast<float*>(out.data()), count),
          find_place_in_byte(first));
  }

  // All elements of types with two elements a byte are finite; elements of other types begin at a whole byte.
  std::uint64_t count_not_finite(const std::byte* elements, std::size_t count) const {
    return from_bits_ < 8 ? 0 : find_bad_values(from_, {elements, count * (from_bits_ / 8)}).count;
  }

  // Holds the buffers that one reader needs to convert a block.
  class Block {
   public:
    Block(const CastBlob& blob, bool counts)
        : blob_(blob), counts_(counts), floats_(kBlockSize), result_(kBlockSize * blob.to_bytes_) {
      if (!blob.data_->map()) source_.resize(locate_byte(kBlockSize, blob.from_bits_) + 1);
    }

    // Returns the converted bytes of elements from `element` on. Requires: 1 to kBlockSize elements.
    std::span<const std::byte> convert_block(std::uint64_t element, std::size_t count, CastStats& stats) {
      const std::byte* const elements = read_elements(element, count);
      if (counts_) stats.not_finite += blob_.count_not_finite(elements, count);
      convert_elements(elements, element, count, stats);
      return std::span<const std::byte>(result_).first(count * blob_.to_bytes_);
    }

   private:
    const std::byte* read_elements(std::uint64_t element, std::size_t count) {
      const std::uint64_t offset = locate_byte(element, blob_.from_bits_);
      if (const auto all = blob_.data_->map()) return all->data() + offset;
      const std::uint64_t end = locate_byte(element + count - 1, blob_.from_bits_) + std::max(blob_.from_bits_ / 8, 1U);
      const auto part = std::span(source_).first(static_cast<std::size_t>(end - offset));
      blob_.data_->read(offset, part);
      return part.data();
    }

    void convert_elements(const std::byte* in, std::uint64_t first, std::size_t count, CastStats& stats) {
      const std::size_t done = blob_.from_ == DType::f64
                                   ? convert_f64(in, count, stats)
                                   : convert_small(in, count, blob_.find_place_in_byte(first), stats);
      if (done == count) return;
      const bool is_double = blob_.from_ == DType::f64;  // other types are in floats_, because all fit float32
      refuse_overflow(first + done, is_double ? load_le<double>(in + 8 * done) : static_cast<double>(floats_[done]));
    }

    std::size_t convert_small(const std::byte* in, std::size_t count, std::uint64_t first, CastStats& stats) {
      if (blob_.to_ == DType::f32) {
        widen(blob_.from_, in, std::span(reinterpret_cast<float*>(result_.data()), count), first);
        stats.values += count;
        return count;
      }
      widen(blob_.from_, in, std::span(floats_).first(count), first);
      auto* out = reinterpret_cast<std::uint16_t*>(result_.data());
      return blob_.to_ == DType::f16 ? narrow_f16(floats_.data(), out, count, stats)
                                     : narrow_bf16(floats_.data(), out, count, stats);
    }

    // Converts directly from float64: rounding twice, through float32, could miss the nearest value.
    std::size_t convert_f64(const std::byte* in, std::size_t count, CastStats& stats) {
      const double smallest_normal = find_smallest_normal(blob_.to_);
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = load_le<double>(in + 8 * i);
        const double result = std::abs(store_f64(value, i));
        ++stats.values;
        if (!std::isfinite(value)) continue;
        if (std::isinf(result)) return i;
        stats.worst_error = std::max(stats.worst_error, std::abs(std::abs(value) - result));
        if (value != 0 && result == 0) ++stats.to_zero;
        if (result != 0 && result < smallest_normal) ++stats.to_subnormal;
      }
      return count;
    }

    double store_f64(double value, std::size_t i) {
      if (blob_.to_ == DType::f32) {
        const auto narrowed = static_cast<float>(value);
        store_le(result_.data() + 4 * i, narrowed);
        return static_cast<double>(narrowed);
      }
      const std::uint16_t code = blob_.to_ == DType::f16 ? encode_f16(value) : encode_bf16(value);
      store_le(result_.data() + 2 * i, code);
      return static_cast<double>(decode_float(blob_.to_, code));
    }

    // Throws unsupported, with the remedy f32 if the value fits float32.
    [[noreturn]] void refuse_overflow(std::uint64_t element, double value) const {
      constexpr double kLargest = std::numeric_limits<float>::max();
      const bool is_single = std::abs(value) <= kLargest;
      Error error(ErrorKind::unsupported, fmt::format("tensor {}: element {} ({:g}) is too large for {}", blob_.name_,
                                                      element, value, to_string(blob_.to_)));
      if (blob_.to_ != DType::f32 && is_single)
        throw std::move(error).with({.kind = Remedy::Kind::dtype, .value = "f32"});
      throw error;
    }

    const CastBlob& blob_;
    bool counts_;  // true if it counts numbers that are not finite
    std::vector<std::byte> source_;
    std::vector<float> floats_;
    std::vector<std::byte> result_;
  };

  std::string name_;
  BlobPtr data_;
  DType from_;
  DType to_;
  unsigned from_bits_;
  std::size_t to_bytes_;
  std::uint64_t elements_;
};

}  // namespace

bool can_widen(DType dtype) { return is_floating(dtype) && dtype != DType::f64; }

void widen(DType dtype, const std::byte* in, std::span<float> out, std::uint64_t first) {
  if (dtype == DType::f4_e2m1) return widen_f4(in, out, first);
  in += locate_byte(first, info(dtype).bits);
  switch (dtype) {
    case DType::f32: std::memcpy(out.data(), in, out.size_bytes()); return;
    case DType::f16: widen_f16(in, out.data(), out.size()); return;
    case DType::bf16: widen_bf16(in, out.data(), out.size()); return;
    case DType::f64:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(load_le<double>(in + 8 * i));
      return;
    default: widen_f8(dtype, in, out);
  }
}

BlobPtr make_cast_blob(std::string name, BlobPtr data, DType from, std::uint64_t elements, DType to,
                       LossyBlobPtr<CastStats>* cast) {
  if (from == to) return data;
  auto blob = std::make_shared<const CastBlob>(std::move(name), std::move(data), from, elements, to);
  if (cast != nullptr) *cast = blob;
  return blob;
}

}  // namespace poise
