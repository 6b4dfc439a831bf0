#include "tensor/affine.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

constexpr std::size_t kBlock = 4096;  // elements at a time: bytes, codes and numbers stay in the first cache

// The low `bits` of a byte as two's complement.
std::int16_t sign_extend(unsigned code, unsigned bits) {
  const unsigned sign = 1U << (bits - 1);
  code &= (1U << bits) - 1;
  return static_cast<std::int16_t>(static_cast<int>(code ^ sign) - static_cast<int>(sign));
}

std::int16_t decode_byte(const CodeFormat& format, unsigned byte) {
  return format.is_unsigned ? static_cast<std::int16_t>(byte & static_cast<unsigned>(format.span())) : sign_extend(byte, format.bits);
}

// The bytes of elements [first, first + count): mapped, or copied.
class CodeBytes {
 public:
  CodeBytes(const Blob& data, const CodeFormat& format) : data_(data), format_(format) {}

  std::span<const std::byte> get(std::uint64_t first, std::size_t count) {
    const std::uint64_t begin = format_.packed ? first / 2 : first;
    const auto length = static_cast<std::size_t>(format_.bytes(first + count) - begin);
    if (const auto all = data_.map()) return all->subspan(static_cast<std::size_t>(begin), length);
    buffer_.resize(length);
    data_.read(begin, buffer_);
    return buffer_;
  }

 private:
  const Blob& data_;
  CodeFormat format_;
  std::vector<std::byte> buffer_;
};

class DecodedBlob final : public Blob {
 public:
  explicit DecodedBlob(const Tensor& tensor)
      : data_(tensor.require("data").blob), dtype_(tensor.require("data").dtype), affine_(tensor.affine), elements_(tensor.elements()) {}

  std::uint64_t size() const override { return elements_ * sizeof(float); }
  bool seekable() const override { return data_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const Affine affine = affine_->get();
    const CodeFormat format = code_format(dtype_, affine);
    CodeBytes bytes(*data_, format);
    std::array<std::int16_t, kBlock> codes;
    std::array<float, kBlock> numbers;
    while (!out.empty()) {
      const std::uint64_t element = offset / sizeof(float);
      const auto skipped = static_cast<std::size_t>(offset % sizeof(float));
      const std::size_t wanted = (skipped + out.size() + sizeof(float) - 1) / sizeof(float);
      const std::size_t count = std::min(wanted, kBlock);
      unpack_codes(format, element, bytes.get(element, count), std::span(codes).first(count));
      decode_codes(affine, std::span<const std::int16_t>(codes).first(count), std::span(numbers).first(count));
      const auto made = std::as_bytes(std::span<const float>(numbers).first(count)).subspan(skipped);
      const std::size_t copied = std::min(made.size(), out.size());
      std::copy_n(made.begin(), copied, out.begin());
      offset += copied;
      out = out.subspan(copied);
    }
  }

 private:
  BlobPtr data_;
  DType dtype_;
  std::shared_ptr<const AffineSource> affine_;
  std::uint64_t elements_;
};

class PackedBlob final : public Blob {
 public:
  PackedBlob(std::string name, BlobPtr data, const CodeFormat& format) : name_(std::move(name)), data_(std::move(data)), format_(format) {}

  std::uint64_t size() const override { return data_->size() / 2 + data_->size() % 2; }
  bool seekable() const override { return data_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t first = 2 * offset;
    const std::uint64_t count = std::min<std::uint64_t>(2 * out.size(), data_->size() - first);
    std::vector<std::byte> codes(static_cast<std::size_t>(count));
    data_->read(first, codes);
    if (const auto bad = find_bad_code(format_, codes)) {
      throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: code {} does not fit 4 bits", name_, first + *bad));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::byte low = codes[2 * i] & std::byte{0x0f};
      const std::byte high = 2 * i + 1 < codes.size() ? codes[2 * i + 1] << 4 : std::byte{0};
      out[i] = low | high;
    }
  }

 private:
  std::string name_;
  BlobPtr data_;
  CodeFormat format_;
};

}  // namespace

CodeFormat code_format(DType dtype, const Affine& affine) {
  if (dtype != DType::qint8 && dtype != DType::qint4) throw Error(ErrorKind::internal, fmt::format("{} has no codes", to_string(dtype)));
  return {info(dtype).bits, affine.ranged(), dtype == DType::qint4 && affine.packed};
}

void unpack_codes(const CodeFormat& format, std::uint64_t first, std::span<const std::byte> bytes, std::span<std::int16_t> codes) {
  if (!format.packed) {
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = decode_byte(format, std::to_integer<unsigned>(bytes[i]));
    return;
  }
  const std::size_t odd = first % 2;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(bytes[(odd + i) / 2]);
    codes[i] = decode_byte(format, (odd + i) % 2 == 0 ? byte & 0x0f : byte >> 4);
  }
}

void decode_codes(const Affine& affine, std::span<const std::int16_t> codes, std::span<float> out) {
  if (affine.ranged()) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      out[i] = static_cast<float>(static_cast<double>(affine.min) + static_cast<double>(codes[i]) * static_cast<double>(affine.delta));
    }
    return;
  }
  for (std::size_t i = 0; i < codes.size(); ++i) out[i] = static_cast<float>(codes[i]) * affine.delta;
}

BlobPtr make_decoded_blob(const Tensor& tensor) { return std::make_shared<DecodedBlob>(tensor); }

Tensor with_packed_codes(const Tensor& tensor) {
  if (tensor.layout != Layout::affine || tensor.require("data").dtype != DType::qint4 || tensor.affine->packed()) return tensor;
  Affine affine = tensor.affine->get();
  Tensor packed = tensor;
  Part& data = packed.parts.front();
  data.blob = std::make_shared<PackedBlob>(tensor.name, data.blob, code_format(DType::qint4, affine));
  data.digest.reset();
  affine.packed = true;
  packed.affine = make_affine(affine);
  return packed;
}

std::optional<std::uint64_t> find_bad_code(const CodeFormat& format, std::span<const std::byte> bytes) {
  if (format.bits == 8 || format.packed) return std::nullopt;
  const auto fits = [&](std::byte byte) {
    const auto code = std::to_integer<unsigned>(byte);
    return format.is_unsigned ? code <= static_cast<unsigned>(format.span()) : sign_extend(code, 4) == sign_extend(code, 8);
  };
  const auto bad = std::ranges::find_if_not(bytes, fits);
  if (bad == bytes.end()) return std::nullopt;
  return static_cast<std::uint64_t>(bad - bytes.begin());
}

}  // namespace poise
