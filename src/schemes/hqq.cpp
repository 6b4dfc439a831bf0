// Reads HQQ, as transformers saves it (HQQLinear.state_dict(), with settings as small tensors). A matrix [out, in] has
// these parts:
//
//   W_q          u8 or i32 [s, group_size], words of the array of codes [groups, group_size]; with axis 0
//                [s, groups], words of the array [group_size, groups]
//   scale, zero  one number for each group, in row-major order of [out, in / group_size]; with axis 0, of
//                [out / group_size, in]
//   shape        i64 [2]: out, in
//   nbits, group_size, axis, quant_scale, quant_zero, ...   the settings, one number each
//   packing      the bytes of a text: "4bit_u8"
//
// value = (code - zero) * scale. A word in row r of W_q has the codes in rows r, s + r, 2 s + r, ... of the array, the
// last one in its low bits. 10 codes of 3 bits leave the two highest bits of a word unused; Poise stores each
// code in four bits.
//
// The array of codes is the matrix in row-major order. So with axis 0, a group has the codes of one column in the rows
// r, out / group_size + r, 2 out / group_size + r, ...
//
// Source: Quantizer and BitPack of hqq 0.2.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "schemes/make_tensors.hpp"
#include "views/computed_blob.hpp"

namespace poise::schemes::hqq {
namespace {

constexpr std::array kParts = std::to_array<std::string_view>(
    {".scale", ".zero", ".shape", ".nbits", ".group_size", ".axis", ".packing", ".quant_scale", ".quant_zero",
     ".unpack_view_dtype", ".view_as_float", ".compute_dtype", ".channel_wise", ".optimize", ".round_zero",
     ".offload_meta", ".encoded_state_dict", ".stores_quant_config"});

struct HqqPacking {
  std::string_view name;
  unsigned bits;
  unsigned word_bytes;
  unsigned per_word;
};
constexpr std::array kPackings = std::to_array<HqqPacking>(
    {{"8bit_u8", 8, 1, 1}, {"4bit_u8", 4, 1, 2}, {"3bit_32", 3, 4, 10}, {"2bit_u8", 2, 1, 4}});

// Converts HQQ's words to codes in row-major order, low bits of a byte first.
class HqqCodes final : public Blob {
 public:
  // `part` is the number of neighbouring codes that have the same place in their words.
  HqqCodes(BlobPtr words, const HqqPacking& packing, unsigned bits, std::uint64_t count, std::uint64_t part)
      : words_(std::move(words)), packing_(packing), bits_(bits), count_(count), part_(part) {}

  std::uint64_t size() const override { return count_ * bits_ / 8; }
  bool seekable() const override { return words_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t per_byte = 8 / bits_;
    std::array<std::uint8_t, kBlockSize> codes;
    while (!out.empty()) {
      const std::size_t bytes = std::min(out.size(), kBlockSize / static_cast<std::size_t>(per_byte));
      unpack(offset * per_byte, std::span(codes).first(bytes * static_cast<std::size_t>(per_byte)));
      for (std::size_t i = 0; i < bytes; ++i) {
        unsigned byte = 0;
        for (unsigned j = 0; j < per_byte; ++j)
          byte |= static_cast<unsigned>(codes[i * static_cast<std::size_t>(per_byte) + j]) << (j * bits_);
        out[i] = static_cast<std::byte>(byte);
      }
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

 private:
  void unpack(std::uint64_t first, std::span<std::uint8_t> out) const {
    std::array<std::byte, kBlockSize * 4> words;
    while (!out.empty()) {
      const std::uint64_t place = first / part_;
      const std::uint64_t begin = first % part_;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), part_ - begin));
      words_->read(begin * packing_.word_bytes, std::span(words).first(count * packing_.word_bytes));
      const auto shift = static_cast<unsigned>(packing_.per_word - 1 - place) * packing_.bits;
      for (std::size_t i = 0; i < count; ++i) {
        const std::byte* const at = words.data() + i * packing_.word_bytes;
        const std::uint32_t word = packing_.word_bytes == 1 ? load_le<std::uint8_t>(at) : load_le<std::uint32_t>(at);
        out[i] = static_cast<std::uint8_t>(word >> shift & ((1U << packing_.bits) - 1));
      }
      first += count;
      out = out.subspan(count);
    }
  }

  BlobPtr words_;
  HqqPacking packing_;
  unsigned bits_;
  std::uint64_t count_;
  std::uint64_t part_;
};

// Reads a setting: one little-endian integer of 1, 4 or 8 bytes.
std::int64_t read_setting(const MatrixParts& matrix, std::string_view ending) {
  const Tensor& tensor = matrix.require(ending);
  const Part& part = matrix.require_data(tensor, {DType::u8, DType::i32, DType::i64});
  if (tensor.elements() != 1)
    matrix.fail(fmt::format("{} has {} elements, expected one", tensor.name, tensor.elements()));
  std::array<std::byte, 8> bytes = {};
  part.blob->read(0, std::span(bytes).first(static_cast<std::size_t>(part.blob->size())));
  const auto number = load_le<std::uint64_t>(bytes.data());
  return part.dtype == DType::i32 ? static_cast<std::int32_t>(number) : static_cast<std::int64_t>(number);
}

const HqqPacking& find_packing(const MatrixParts& matrix) {
  constexpr std::uint64_t kLongest = 64;
  const Tensor& tensor = matrix.require(".packing");
  const Part& part = matrix.require_data(tensor, {DType::u8});
  if (part.blob->size() > kLongest)
    matrix.fail(fmt::format("{} has {} bytes, expected at most {}", tensor.name, part.blob->size(), kLongest));
  std::string name(static_cast<std::size_t>(part.blob->size()), '\0');
  part.blob->read(0, std::as_writable_bytes(std::span(name)));
  for (const HqqPacking& packing : kPackings) {
    if (packing.name == name) return packing;
  }
  std::vector<std::string_view> names;
  for (const HqqPacking& packing : kPackings) names.push_back(packing.name);
  throw Error(ErrorKind::unsupported, fmt::format("matrix {}: HQQ: the packing is \"{}\", only {} are supported",
                                                  matrix.name(), name, fmt::join(names, ", ")));
}

Shape read_shape(const MatrixParts& matrix) {
  const Tensor& tensor = matrix.require(".shape");
  const Part& part = matrix.require_data(tensor, {DType::i64});
  matrix.require_shape(tensor, {2});
  std::array<std::uint64_t, 2> sizes;
  part.blob->read(0, std::as_writable_bytes(std::span(sizes)));
  if (sizes[0] == 0 || sizes[0] > UINT32_MAX || sizes[1] == 0 || sizes[1] > UINT32_MAX)
    matrix.fail(fmt::format("{} is [{}, {}], expected positive numbers of 32 bits", tensor.name,
                            static_cast<std::int64_t>(sizes[0]), static_cast<std::int64_t>(sizes[1])));
  return {sizes[0], sizes[1]};
}

// Throws unsupported for a variant that Poise does not read.
[[noreturn]] void refuse(const MatrixParts& matrix, std::string_view what) {
  throw Error(ErrorKind::unsupported, fmt::format("matrix {}: HQQ: {}", matrix.name(), what));
}

void require_plain_settings(const MatrixParts& matrix) {
  for (const std::string_view ending : {".quant_scale", ".quant_zero", ".view_as_float"}) {
    if (matrix.find(ending) != nullptr && read_setting(matrix, ending) != 0)
      refuse(matrix, fmt::format("{} is true, only false is supported", ending.substr(1)));
  }
}

// Computes GroupParts::index for axis 0: the group of each row, 0, 1, ..., groups - 1, 0, 1, ...
class GroupsOfRows final : public Blob {
 public:
  GroupsOfRows(std::uint64_t rows, std::uint64_t groups) : rows_(rows), groups_(groups) {}

  std::uint64_t size() const override { return rows_ * sizeof(std::uint32_t); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::byte& byte : out) {
      const std::uint64_t group = offset / sizeof(std::uint32_t) % groups_;
      byte = static_cast<std::byte>(group >> (offset % sizeof(std::uint32_t) * 8));
      ++offset;
    }
  }

 private:
  std::uint64_t rows_;
  std::uint64_t groups_;
};

Tensor fold(const MatrixParts& matrix, const QuantizationConfig&) {
  require_plain_settings(matrix);
  const Shape shape = read_shape(matrix);
  const HqqPacking& packing = find_packing(matrix);
  if (const std::int64_t bits = read_setting(matrix, ".nbits"); bits != packing.bits)
    matrix.fail(fmt::format("nbits is {}, which contradicts the packing {}", bits, packing.name));
  const std::int64_t axis = read_setting(matrix, ".axis");
  if (axis != 0 && axis != 1) matrix.fail(fmt::format("axis is {}, expected 0 or 1", axis));
  const std::uint64_t along = shape[static_cast<std::size_t>(axis)];
  const std::int64_t size =
      matrix.find(".group_size") == nullptr ? static_cast<std::int64_t>(along) : read_setting(matrix, ".group_size");
  const auto divides = [&](std::uint64_t number) { return number % static_cast<std::uint64_t>(size) == 0; };
  if (size < 1 || !divides(shape[0] * shape[1]))
    matrix.fail(fmt::format("groups of {} do not divide its {} numbers", size, shape[0] * shape[1]));
  if (!divides(along))
    refuse(matrix, fmt::format("its {1} {2} are not a multiple of the group size {0}, which is not supported", size,
                               along, axis == 0 ? "rows" : "columns"));
  const auto group_size = static_cast<std::uint64_t>(size);
  const std::uint64_t groups = along / group_size * shape[axis == 0 ? 1 : 0];
  const std::uint64_t lines = axis == 0 ? group_size : groups;  // rows of the array of codes
  const std::uint64_t line = axis == 0 ? groups : group_size;
  const std::uint64_t rows = ceil_div(lines, packing.per_word);
  if (packing.word_bytes == 1 && lines % packing.per_word != 0)
    matrix.fail(fmt::format("{} {} do not fill words of {} codes", lines, axis == 0 ? "codes of a group" : "groups",
                            packing.per_word));
  const Tensor& weight = matrix.require(".W_q");
  const Part& words =
      packing.word_bytes == 1 ? matrix.require_data(weight, {DType::u8}) : matrix.require_data(weight, {DType::i32});
  matrix.require_shape(weight, {rows, line});
  for (const std::string_view ending : {".scale", ".zero"}) {
    const Tensor& tensor = matrix.require(ending);
    matrix.require_data(tensor, {DType::f16, DType::bf16, DType::f32});
    if (tensor.elements() != groups)
      matrix.fail(fmt::format("the shape of {} is {}, expected one for each of {} groups", tensor.name,
                              to_string(tensor.shape), groups));
  }
  const unsigned stored = round_bits(packing.bits);
  if (shape[1] * stored % 8 != 0)
    refuse(matrix, fmt::format("a row has {} codes of {} bits, which are not whole bytes; this is not supported",
                               shape[1], stored));
  const Tensor& zeros = matrix.require(".zero");
  const Part& zero = zeros.require("data");
  return make_group_tensor(
      matrix, {.shape = shape,
               .bits = stored,
               .group_size = group_size,
               .codes = std::make_shared<HqqCodes>(words.blob, packing, stored, shape[0] * shape[1], rows * line),
               .scales = make_part("scales", matrix.require(".scale").require("data")),
               .zeros = zero.dtype == DType::f16 ? make_part("zeros", zero)
                                                 : make_part("zeros", DType::f32, cast_to_f32(zeros)),
               .index = axis == 0 ? std::make_shared<GroupsOfRows>(shape[0], along / group_size) : nullptr,
               .axis = static_cast<std::size_t>(axis)});
}

}  // namespace

const QuantizationScheme kHqq = {.title = "HQQ", .method = "hqq", .marker = ".W_q", .parts = kParts, .fold = fold};

}  // namespace poise::schemes::hqq
