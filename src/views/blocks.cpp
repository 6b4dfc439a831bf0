#include "views/affine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/quantize_kernels.hpp"
#include "io/read_fully.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/scan.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr std::size_t kElementsAtOnce = 32768;  // about this many elements are encoded at a time

class BlockEncodedBlob final : public LossyBlob<QuantizationError> {
 public:
  BlockEncodedBlob(const Tensor& tensor, const BlockType& type, Importance importance)
      : name_(tensor.name),
        elements_(make_dense_blob(tensor, DType::f32)),
        type_(type),
        row_(static_cast<std::size_t>(tensor.shape.back())),
        row_bytes_(row_ / type.elements * type.bytes),
        rows_(row_ == 0 ? 0 : tensor.elements() / row_),
        importance_(std::move(importance)) {}

  std::uint64_t size() const override { return rows_ * row_bytes_; }
  bool seekable() const override { return elements_->seekable(); }
  std::uint64_t grain() const override { return row_bytes_; }
  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<Rows>(*this); }

  void read_measured(std::uint64_t offset, std::span<std::byte> out, QuantizationError* loss) const override {
    if (out.empty()) return;
    Memory memory;
    std::vector<std::byte> blocks;
    read_units(offset, out, row_bytes_, count_rows_at_once(), [&](std::uint64_t first, std::size_t count) {
      memory.numbers.resize(count * row_);
      elements_->read(first * row_ * sizeof(float), std::as_writable_bytes(std::span(memory.numbers)));
      blocks.resize(count * row_bytes_);
      encode(first, count, memory, blocks.data(), loss);
      return std::span(blocks);
    });
  }

 private:
  struct Memory {
    std::vector<float> numbers;
    std::vector<float> decoded;
  };

  // Encodes whole rows and keeps their unread bytes, because the stream of elements cannot go back to the beginning of
  // a row.
  class Rows final : public BlobStream {
   public:
    explicit Rows(const BlockEncodedBlob& blob) : blob_(blob), elements_(blob.elements_->stream()) {}

    std::size_t read(std::span<std::byte> out) override {
      std::size_t done = 0;
      while (done < out.size() && (left_ > 0 || row_ < blob_.rows_)) {
        if (left_ == 0) encode_next_rows();
        const std::size_t taken = std::min(left_, out.size() - done);
        std::copy_n(rows_.end() - static_cast<std::ptrdiff_t>(left_), taken,
                    out.begin() + static_cast<std::ptrdiff_t>(done));
        left_ -= taken;
        done += taken;
      }
      return done;
    }

   private:
    void encode_next_rows() {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(blob_.count_rows_at_once(), blob_.rows_ - row_));
      memory_.numbers.resize(count * blob_.row_);
      read_fully(*elements_, std::as_writable_bytes(std::span(memory_.numbers)));
      rows_.resize(count * blob_.row_bytes_);
      blob_.encode(row_, count, memory_, rows_.data(), nullptr);
      left_ = rows_.size();
      row_ += count;
    }

    const BlockEncodedBlob& blob_;
    std::unique_ptr<BlobStream> elements_;
    Memory memory_;
    std::vector<std::byte> rows_;
    std::size_t left_ = 0;  // the bytes at the end of rows_ that have not been read yet
    std::uint64_t row_ = 0;
  };

  std::size_t count_rows_at_once() const { return std::max<std::size_t>(1, kElementsAtOnce / row_); }

  void encode(std::uint64_t first, std::size_t count, Memory& memory, std::byte* out, QuantizationError* loss) const {
    encode_rows(first, count, memory.numbers.data(), out);
    // Squares of finite float32 numbers fit float64, so their sum shows whether all numbers are finite.
    const QuantizationError error = measure_error(count, memory, out);
    if (!std::isfinite(error.squared_values)) refuse_non_finite_element(first, memory);
    if (uses_importance() || !std::isfinite(error.squared_error) || error.worst > kLargestF16)
      check_decoded_blocks(first, count, memory, out);
    if (loss != nullptr) loss->merge(error);
  }

  bool uses_importance() const { return importance_ != nullptr && type_.uses_importance; }

  // Returns how many rows share weights, since each stacked matrix may have its own. Requires: there are weights.
  std::uint64_t count_rows_of_matrix() const { return rows_ / (importance_->size() / row_); }
  const float* get_weights(std::uint64_t row) const {
    return importance_->data() + row / count_rows_of_matrix() * row_;
  }

  void encode_rows(std::uint64_t first, std::size_t count, const float* numbers, std::byte* out) const {
    if (!uses_importance()) return type_.encode({numbers, count, row_, nullptr}, out);
    const std::uint64_t each = count_rows_of_matrix();
    while (count > 0) {
      const auto rows = static_cast<std::size_t>(std::min<std::uint64_t>(count, each - first % each));
      type_.encode({numbers, rows, row_, get_weights(first)}, out);
      first += rows;
      count -= rows;
      numbers += rows * row_;
      out += rows * row_bytes_;
    }
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorKind::unsupported, fmt::format("tensor {}: {}", name_, problem))
        .with({.kind = Remedy::Kind::keep, .value = "f32", .tensor = name_});
  }

  [[noreturn]] void refuse_non_finite_element(std::uint64_t first, const Memory& memory) const {
    const BadValues bad = find_bad_values(DType::f32, std::as_bytes(std::span<const float>(memory.numbers)));
    refuse(fmt::format("element {} is not finite and cannot be quantized", first * row_ + bad.first));
  }

  // Throws an error if a block would decode to zeros, far smaller numbers, infinity or NaN, because its scale cannot
  // represent its numbers, or the search for the scale has overflowed float32. Small numbers may become zeros.
  void check_decoded_blocks(std::uint64_t first, std::size_t count, Memory& memory, const std::byte* blocks) const {
    memory.decoded.resize(count * row_);
    type_.decode(blocks, count * row_ / type_.elements, memory.decoded.data());
    for (std::size_t begin = 0; begin < count * row_; begin += type_.elements) {
      const auto numbers = std::span<const float>(memory.numbers).subspan(begin, type_.elements);
      const auto decoded = std::span<const float>(memory.decoded).subspan(begin, type_.elements);
      const bool finite = std::ranges::all_of(decoded, [](float number) { return std::isfinite(number); });
      const float* const weights = uses_importance() ? get_weights(first + begin / row_) + begin % row_ : nullptr;
      if (!finite ||
          (weights != nullptr ? loses_all_numbers(numbers, decoded, weights) : loses_largest(numbers, decoded)))
        refuse_block(first * row_ + begin, numbers, finite);
    }
  }

  // Returns true if all decoded numbers are zero although a number with a weight of 1 or more is not small.
  static bool loses_all_numbers(std::span<const float> numbers, std::span<const float> decoded, const float* weights) {
    constexpr float kSmall = 0x1p-10F;
    if (!std::ranges::all_of(decoded, [](float number) { return number == 0; })) return false;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (std::abs(numbers[i]) >= kSmall && weights[i] >= 1) return true;
    }
    return false;
  }

  // Returns true if the largest number of a block is beyond float16, and becomes far smaller. Its square can overflow
  // in the search for a scale, or the block may need a larger scale than nvfp4 has.
  static bool loses_largest(std::span<const float> numbers, std::span<const float> decoded) {
    constexpr float kLeastPart = 1.0F / 64;
    const auto largest = std::ranges::max_element(numbers, {}, [](float number) { return std::abs(number); });
    return std::abs(*largest) > static_cast<float>(kLargestF16) &&
           std::abs(decoded[static_cast<std::size_t>(largest - numbers.begin())]) < std::abs(*largest) * kLeastPart;
  }

  [[noreturn]] void refuse_block(std::uint64_t element, std::span<const float> numbers, bool finite) const {
    const float largest = std::abs(std::ranges::max(numbers, {}, [](float number) { return std::abs(number); }));
    refuse(fmt::format("block {} (from element {} on, the largest magnitude is {:g}) becomes {} in {}{}",
                       element / type_.elements, element, largest,
                       finite ? "zeros, or far smaller numbers," : "numbers that are not finite", type_.name,
                       uses_importance() ? ", with these weights of the importance matrix" : ""));
  }

  QuantizationError measure_error(std::size_t count, Memory& memory, const std::byte* blocks) const {
    QuantizationError error;
    memory.decoded.resize(row_);
    for (std::size_t r = 0; r < count; ++r) {
      type_.decode(blocks + r * row_bytes_, row_ / type_.elements, memory.decoded.data());
      error.merge(measure_loss(memory.numbers.data() + r * row_, memory.decoded.data(), row_));
    }
    return error;
  }

  std::string name_;
  BlobPtr elements_;
  const BlockType& type_;
  std::size_t row_;        // elements in a row
  std::size_t row_bytes_;  // bytes of a row as blocks
  std::uint64_t rows_;
  Importance importance_;
};

constexpr std::size_t kElements =
    8192;  // about this many elements are decoded at a time; they fit the first-level cache

class BlockDecodedBlob final : public Blob {
 public:
  explicit BlockDecodedBlob(const Tensor& tensor)
      : type_(*get_block_type(tensor.layout)), blocks_(tensor.require("data").blob), elements_(tensor.elements()) {}

  std::uint64_t size() const override { return elements_ * sizeof(float); }
  bool seekable() const override { return blocks_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::size_t most = std::max<std::size_t>(1, kElements / type_.elements);
    std::vector<std::byte> stored;
    std::vector<float> numbers;
    read_units(offset, out, type_.elements * sizeof(float), most, [&](std::uint64_t first, std::size_t count) {
      numbers.resize(count * type_.elements);
      type_.decode(load_blocks(first, count, stored), count, numbers.data());
      return std::as_bytes(std::span(numbers));
    });
  }

 private:
  const std::byte* load_blocks(std::uint64_t first, std::size_t count, std::vector<std::byte>& copy) const {
    if (const auto mapped = blocks_->map()) return mapped->data() + first * type_.bytes;
    copy.resize(count * type_.bytes);
    blocks_->read(first * type_.bytes, copy);
    return copy.data();
  }

  const BlockType& type_;
  BlobPtr blocks_;
  std::uint64_t elements_;
};

std::optional<TensorLayout> read_blocks(const Tensor&, std::string_view name) { return find_block_layout(name); }

bool can_decode_blocks(const Tensor& tensor) { return get_block_type(tensor.layout)->decode != nullptr; }

BlobPtr make_block_elements(const Tensor& tensor) {
  check_block_parts(tensor);
  if (get_block_direction(tensor.layout) == BlocksAlong::rows) return std::make_shared<BlockDecodedBlob>(tensor);
  return transpose_view(make_dense_tensor(transpose_view(tensor))).require("data").blob;
}

ValueRules make_block_rules(const Tensor& tensor, const Part& part) {
  ValueRules rules{part.dtype};
  if (part.role == "data" && can_decode_blocks(tensor)) rules.blocks = get_block_type(tensor.layout);
  return rules;
}

std::string describe_block_type(const Tensor& tensor) { return std::string(get_block_type(tensor.layout)->name); }

bool is_stored_as_blocks(const Tensor& tensor, const StoredType& type) {
  return get_block_type(type) == get_block_type(tensor.layout);
}

}  // namespace

Tensor quantize_to_blocks(const Tensor& tensor, const BlockType& type, Importance importance,
                          LossyBlobPtr<QuantizationError>* codes) {
  const auto blob = std::make_shared<const BlockEncodedBlob>(tensor, type, std::move(importance));
  if (codes != nullptr) *codes = blob;
  return make_blocks(tensor.name, tensor.shape, type, blob);
}

const LayoutType layouts::blocks = {
    .name = "blocks",
    .quantized = true,
    .read = read_blocks,
    .check = check_block_parts,
    .value_rules = make_block_rules,
    .has_float_elements = can_decode_blocks,
    .elements = make_block_elements,
    .stored_type = describe_block_type,
    .is_stored_as = is_stored_as_blocks,
};

}  // namespace poise
