#include "views/integer_blobs.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "io/threads.hpp"
#include "numeric/float_formats.hpp"
#include "views/computed_blob.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kWordBytes = 4;
using ByteMap = std::array<std::byte, 256>;

std::uint64_t get_row_bytes(const PackedCodes& codes) {
  return codes.row_bytes != 0 ? codes.row_bytes : codes.columns * codes.bits / 8;
}

// Returns the place in the stream of the i-th code of a row or column.
std::uint64_t find_place(const PackedCodes& codes, std::uint64_t i) {
  if (codes.order.empty()) return i;
  const std::uint64_t turn = codes.order.size();
  return i / turn * turn + codes.order[static_cast<std::size_t>(i % turn)];
}

// Returns true if neighbours in row-major order are neighbours in a stream.
bool are_rows_of_streams(const PackedCodes& codes, MatrixOrder order) {
  return (codes.along == PackedCodes::Along::rows) == (order == MatrixOrder::same);
}

// Reads the codes of a matrix. A line is a row or a column whose codes form one stream of bits.
class Codes {
 public:
  Codes(const PackedCodes& codes, MatrixOrder order)
      : width_(order == MatrixOrder::transposed ? codes.rows : codes.columns),
        along_lines_(are_rows_of_streams(codes, order)),
        add_(codes.add),
        bits_(codes.bits),
        mask_((1U << codes.bits) - 1),
        word_bytes_(codes.along == PackedCodes::Along::rows ? kWordBytes : codes.columns * kWordBytes),
        line_bytes_(codes.along == PackedCodes::Along::rows ? get_row_bytes(codes) : kWordBytes),
        loaded_(codes.words) {
    // The pattern of places repeats after a whole number of words and of repetitions of codes.order.
    const std::uint64_t turn = std::max<std::uint64_t>(1, codes.order.size());
    const std::uint64_t period = std::lcm(turn, codes.per_word != 0 ? codes.per_word : std::uint64_t{8} * kWordBytes);
    const auto find_bit = [&](std::uint64_t place) {
      return codes.per_word == 0 ? place * codes.bits
                                 : place / codes.per_word * 32 + place % codes.per_word * codes.bits;
    };
    const auto find_byte_place = [&](std::uint64_t index) {
      return index / kWordBytes * word_bytes_ + index % kWordBytes;
    };
    for (std::uint64_t i = 0; i < period; ++i) {
      const std::uint64_t bit = find_bit(find_place(codes, i));
      places_.push_back(
          {find_byte_place(bit / 8), find_byte_place((bit + codes.bits - 1) / 8), static_cast<unsigned>(bit % 8)});
    }
    period_bytes_ = find_byte_place(find_bit(period) / 8);
  }

  // Makes bytes of codes, each from one byte of the words. Requires: make_byte_map() made `map`.
  void copy_bytes(std::uint64_t first, const ByteMap& map, std::span<std::byte> out) const {
    const std::uint64_t width = width_ / (8 / bits_);
    std::uint64_t line = first / width;
    std::uint64_t index = first % width;
    const std::byte* from = loaded_.bytes().data() + line * line_bytes_;
    for (std::byte& to : out) {
      to = map[std::to_integer<std::size_t>(from[index / kWordBytes * word_bytes_ + index % kWordBytes])];
      if (++index < width) continue;
      index = 0;
      from = loaded_.bytes().data() + ++line * line_bytes_;
    }
  }

  // Copies the codes of elements that are neighbours in row-major order.
  void copy(std::uint64_t first, std::span<std::uint8_t> out) const {
    while (!out.empty()) {
      const std::uint64_t row = first / width_;
      const std::uint64_t column = first % width_;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), width_ - column));
      along_lines_ ? copy_line(row, column, out.first(count)) : copy_across_lines(row, column, out.first(count));
      first += count;
      out = out.subspan(count);
    }
  }

 private:
  // Describes the place of a code in its period: the one or two bytes that have it. If one byte has the whole code,
  // `low` and `high` are the same.
  struct Place {
    std::uint64_t low;
    std::uint64_t high;
    unsigned shift;
  };

  std::uint8_t extract_packed_code(const std::byte* at, const Place& place) const {
    const unsigned low = std::to_integer<unsigned>(at[place.low]);
    const unsigned high = std::to_integer<unsigned>(at[place.high]);
    // The mask drops the bits above a code, which include those of a byte that was read twice.
    return static_cast<std::uint8_t>((((low | high << 8U) >> place.shift) + add_) & mask_);
  }

  void copy_line(std::uint64_t line, std::uint64_t begin, std::span<std::uint8_t> out) const {
    const std::byte* at = loaded_.bytes().data() + line * line_bytes_ + begin / places_.size() * period_bytes_;
    auto i = static_cast<std::size_t>(begin % places_.size());
    for (std::uint8_t& to : out) {
      to = extract_packed_code(at, places_[i]);
      if (++i < places_.size()) continue;
      i = 0;
      at += period_bytes_;
    }
  }

  // Copies the codes that have the same place in consecutive lines.
  void copy_across_lines(std::uint64_t place, std::uint64_t line, std::span<std::uint8_t> out) const {
    const Place& of_all = places_[static_cast<std::size_t>(place % places_.size())];
    const std::byte* at = loaded_.bytes().data() + line * line_bytes_ + place / places_.size() * period_bytes_;
    for (std::uint8_t& to : out) {
      to = extract_packed_code(at, of_all);
      at += line_bytes_;
    }
  }

  std::uint64_t width_;
  bool along_lines_;
  unsigned add_;
  unsigned bits_;
  unsigned mask_;
  std::uint64_t word_bytes_;  // the distance of words in a line
  std::uint64_t line_bytes_;  // the distance of lines
  std::uint64_t period_bytes_ = 0;
  std::vector<Place> places_;  // the places in a period
  LoadedBlob loaded_;
};

// Returns a map from each byte of `words` to the byte of codes that it becomes. Returns std::nullopt unless every byte
// of codes is made from exactly one byte of `words`.
std::optional<ByteMap> make_byte_map(const PackedCodes& codes, MatrixOrder order, unsigned bits) {
  if (bits != codes.bits || !are_rows_of_streams(codes, order)) return std::nullopt;
  const std::size_t of_byte = 8 / bits;
  const std::uint64_t length = codes.along == PackedCodes::Along::rows ? codes.columns : codes.rows;
  if (length % of_byte != 0 || (codes.per_word != 0 && codes.per_word * bits != 8 * kWordBytes) ||
      (!codes.order.empty() && of_byte % codes.order.size() != 0))
    return std::nullopt;
  ByteMap map = {};
  for (unsigned byte = 0; byte < map.size(); ++byte) {
    unsigned packed = 0;
    for (std::size_t i = 0; i < of_byte; ++i) {
      const unsigned code = (byte >> find_place(codes, i) * bits) + codes.add;
      packed |= (code & ((1U << bits) - 1)) << i * bits;
    }
    map[byte] = static_cast<std::byte>(packed);
  }
  return map;
}

// Maps each byte of `words` to the byte of codes at the same place.
class MappedBytes final : public Blob {
 public:
  MappedBytes(BlobPtr bytes, std::uint64_t size, const ByteMap& map)
      : bytes_(std::move(bytes)), size_(size), map_(map) {}

  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return bytes_->seekable(); }
  bool decodable() const override { return bytes_->decodable(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    bytes_->read(offset, out);
    for (std::byte& byte : out) byte = map_[std::to_integer<std::size_t>(byte)];
  }

 private:
  BlobPtr bytes_;
  std::uint64_t size_;
  ByteMap map_;
};

// Makes codes of `bits` bits each, or float16 numbers if `bits` is kNumbers.
class CodesBlob final : public Blob {
 public:
  static constexpr unsigned kNumbers = 16;

  // `map` is the result of make_byte_map() for these codes.
  CodesBlob(PackedCodes codes, MatrixOrder order, unsigned bits, const std::optional<ByteMap>& map)
      : codes_(std::move(codes)),
        words_{.change = StoredAs::Change::codes, .blob = codes_.words},
        order_(order),
        bits_(bits),
        map_(map) {
    const std::uint64_t count = codes_.rows * codes_.columns;
    size_ = bits == kNumbers ? 2 * count : (count * bits + 7) / 8;
    if (bits != kNumbers) return;
    for (unsigned code = 0; code < 256; ++code) numbers_.push_back(encode_f16(code));
  }

  std::uint64_t size() const override { return size_; }
  const StoredAs* stored_as() const override { return bits_ == kNumbers ? &words_ : nullptr; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const auto codes = kept_.get([this] { return std::make_shared<const Codes>(codes_, order_); });
    const bool is_last = offset + out.size() == size_;
    while (!out.empty()) {
      const std::size_t count = std::min(out.size(), kBlockSize);
      bits_ == kNumbers ? make_numbers(*codes, offset, out.first(count)) : pack_bytes(*codes, offset, out.first(count));
      offset += count;
      out = out.subspan(count);
    }
    if (is_last) kept_.release();
  }

 private:
  void pack_bytes(const Codes& codes, std::uint64_t offset, std::span<std::byte> out) const {
    if (map_) return codes.copy_bytes(offset, *map_, out);
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
  StoredAs words_;
  MatrixOrder order_;
  unsigned bits_;
  std::optional<ByteMap> map_;
  std::uint64_t size_ = 0;
  std::vector<std::uint16_t> numbers_;  // numbers_[code] is the code as float16
  LazyValue<const Codes> kept_;
};

}  // namespace

BlobPtr make_codes_blob(const PackedCodes& codes, MatrixOrder order, unsigned bits) {
  const auto map = make_byte_map(codes, order, bits);
  if (map && codes.along == PackedCodes::Along::rows && get_row_bytes(codes) == codes.columns * bits / 8)
    return std::make_shared<MappedBytes>(codes.words, codes.rows * get_row_bytes(codes), *map);
  return std::make_shared<CodesBlob>(codes, order, bits, map);
}

BlobPtr make_code_numbers_blob(const PackedCodes& codes, MatrixOrder order) {
  return std::make_shared<CodesBlob>(codes, order, CodesBlob::kNumbers, std::nullopt);
}

}  // namespace poise
