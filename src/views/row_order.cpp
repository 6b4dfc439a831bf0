#include "views/row_order.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tensor/block_layout.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/mx.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

class RowOrderBlob final : public Blob {
 public:
  RowOrderBlob(BlobPtr blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrder to)
      : rows_{.change = StoredAs::Change::rows_interleaved,
              .blob = std::move(blob),
              .row_bytes = row_bytes,
              .head_rows = head_rows},
        to_(to) {}

  std::uint64_t size() const override { return rows_.blob->size(); }
  bool seekable() const override { return rows_.blob->seekable(); }
  bool decodable() const override { return rows_.blob->decodable(); }

  std::optional<Stored> stored() const override {
    auto stored = rows_.blob->stored();
    if (stored)
      stored->encoding +=
          to_ == RowOrder::halves ? ", rows in the order of llama.cpp" : ", rows in the order of transformers";
    return stored;
  }
  const StoredAs* stored_as() const override { return to_ == RowOrder::halves ? &rows_ : nullptr; }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    return rows_.blob->stored_byte(find_stored_offset(offset));
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::size_t bytes = std::min<std::size_t>(out.size(), rows_.row_bytes - offset % rows_.row_bytes);
      rows_.blob->read(find_stored_offset(offset), out.first(bytes));
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

 private:
  std::uint64_t find_stored_offset(std::uint64_t offset) const {
    const std::uint64_t row = offset / rows_.row_bytes;
    const std::uint64_t from =
        to_ == RowOrder::halves ? find_row_in_pairs(row, rows_.head_rows) : find_row_in_halves(row, rows_.head_rows);
    return from * rows_.row_bytes + offset % rows_.row_bytes;
  }

  StoredAs rows_;
  RowOrder to_;
};

// Copies the elements of a row in the given order. A byte has 8 / kBits elements.
template <unsigned kBits>
void gather_codes(const std::byte* row, const std::uint32_t* order, std::span<std::byte> out) {
  constexpr unsigned kPerByte = 8 / kBits;
  constexpr unsigned kMask = (1U << kBits) - 1;
  for (std::byte& to : out) {
    unsigned packed = 0;
    for (unsigned i = 0; i < kPerByte; ++i) {
      const std::uint32_t from = *order++;
      packed |= (std::to_integer<unsigned>(row[from / kPerByte]) >> from % kPerByte * kBits & kMask) << i * kBits;
    }
    to = static_cast<std::byte>(packed);
  }
}

// Copies the elements of a row, which have `bytes` bytes each, in the given order.
void gather_elements(const std::byte* row, std::size_t bytes, const std::uint32_t* order, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); i += bytes) std::memcpy(out.data() + i, row + *order++ * bytes, bytes);
}

class ColumnOrderBlob final : public Blob {
 public:
  ColumnOrderBlob(BlobPtr rows, unsigned bits, std::uint64_t columns, std::vector<std::uint32_t> order)
      : rows_(std::move(rows)),
        bits_(bits),
        row_bytes_(static_cast<std::size_t>(columns * bits / 8)),
        made_bytes_(order.size() * bits / 8),
        order_(std::move(order)) {}

  std::uint64_t size() const override { return row_bytes_ == 0 ? 0 : rows_->size() / row_bytes_ * made_bytes_; }
  bool seekable() const override { return rows_->seekable(); }
  bool decodable() const override { return rows_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> row(row_bytes_);
    std::vector<std::byte> made(made_bytes_);
    read_units(offset, out, made_bytes_, 1, [&](std::uint64_t first, std::size_t) {
      rows_->read(first * row_bytes_, row);
      reorder_row(row.data(), made);
      return std::span(made);
    });
  }

 private:
  void reorder_row(const std::byte* row, std::span<std::byte> out) const {
    switch (bits_) {
      case 2: return gather_codes<2>(row, order_.data(), out);
      case 4: return gather_codes<4>(row, order_.data(), out);
      case 8: return gather_codes<8>(row, order_.data(), out);
      default: return gather_elements(row, bits_ / 8, order_.data(), out);
    }
  }

  BlobPtr rows_;
  unsigned bits_;
  std::size_t row_bytes_;
  std::size_t made_bytes_;
  std::vector<std::uint32_t> order_;
};

bool has_whole_rows(const Tensor& tensor) {
  if (tensor.layout == Layout::dense) return info(tensor.require("data").dtype).bits % 8 == 0;
  if (get_block_type(tensor.layout) != nullptr) return get_block_direction(tensor.layout) == BlocksAlong::rows;
  return is_mxfp4(tensor);
}

// Returns the part with another blob, and without its digest.
Part replace_blob(const Part& part, BlobPtr blob) {
  Part result = part;
  result.blob = std::move(blob);
  result.digest = {};
  return result;
}

bool are_stored_alike(const Tensor& tensor, const Tensor& other) {
  return tensor.layout == other.layout && std::ranges::equal(tensor.parts, other.parts, {}, &Part::dtype, &Part::dtype);
}

Tensor make_dense_float32(const Tensor& tensor) {
  return make_dense(tensor.name, tensor.shape, DType::f32, make_dense_blob(tensor, DType::f32));
}

// Describes where rows are: the strides along each axis of `shape`, and the first row, all counted in rows.
struct RowPlaces {
  Shape shape;
  std::vector<std::uint64_t> strides;
  std::uint64_t first = 0;
};

// Returns the rows at these places as a tensor of shape `as`, with the columns of the stack, if it has them, as a last
// axis. Throws unsupported for rows of codes of 4 GiB or more.
Tensor make_row_view(const Tensor& stack, const RowPlaces& places, Shape as) {
  check_parts(stack);
  const std::uint64_t columns = stack.shape.size() == 2 ? 1 : stack.shape[2];
  const std::uint64_t rows = stack.shape[0] * stack.shape[1];
  const bool dense = stack.layout == Layout::dense;
  Tensor result = stack;
  if (stack.shape.size() > 2) as.push_back(columns);
  result.shape = std::move(as);
  result.parts.clear();
  for (const Part& part : stack.parts) {
    // Numbers are read one by one, so that a part of a row can be read; codes are read in whole rows.
    const std::uint64_t row_bytes = rows == 0 || columns == 0 ? 1 : part.blob->size() / rows;
    const std::uint64_t item = dense ? info(part.dtype).bits / 8 : row_bytes;
    if (item > UINT32_MAX)
      throw Error(ErrorKind::unsupported,
                  fmt::format("tensor {}: a row has {} bytes, at most {} are supported", stack.name, item, UINT32_MAX));
    Strided view = {.shape = places.shape,
                    .strides = {},
                    .offset = places.first * row_bytes,
                    .item_bytes = static_cast<unsigned>(item)};
    for (const std::uint64_t stride : places.strides)
      view.strides.push_back(static_cast<std::int64_t>(stride * row_bytes));
    if (dense) {
      view.shape.push_back(columns);
      view.strides.push_back(static_cast<std::int64_t>(item));
    }
    result.parts.push_back(replace_blob(part, make_strided_blob(part.blob, view)));
  }
  if (!is_mxfp4(stack)) return result;
  return make_mxfp4(stack.name, result.shape, result.require("data").blob, result.require("scales").blob);
}

class JoinedBlob final : public Blob {
 public:
  explicit JoinedBlob(std::vector<BlobPtr> blobs) : blobs_(std::move(blobs)) {
    for (const BlobPtr& blob : blobs_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + blob->size());
  }

  std::uint64_t size() const override { return ends_.back(); }
  bool seekable() const override {
    return std::ranges::all_of(blobs_, [](const BlobPtr& blob) { return blob->seekable(); });
  }
  // Returns the grain of the blobs if all have the same one and each blob's size is a multiple of it, else 1.
  std::uint64_t grain() const override {
    const std::uint64_t grain = blobs_.front()->grain();
    return std::ranges::all_of(blobs_,
                               [&](const BlobPtr& blob) { return blob->grain() == grain && blob->size() % grain == 0; })
               ? grain
               : 1;
  }
  bool decodable() const override {
    return std::ranges::all_of(blobs_, [](const BlobPtr& blob) { return blob->decodable(); });
  }

  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    const auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
    return blobs_[i]->stored_byte(offset - (i == 0 ? 0 : ends_[i - 1]));
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
    while (!out.empty()) {
      const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), ends_[i] - offset));
      if (bytes > 0) blobs_[i]->read(offset - begin, out.first(bytes));
      offset += bytes;
      out = out.subspan(bytes);
      ++i;
    }
  }

  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<Stream>(blobs_); }

 private:
  // Streams the blobs in turn, because some may not be seekable.
  class Stream final : public BlobStream {
   public:
    explicit Stream(const std::vector<BlobPtr>& blobs) : blobs_(blobs) {}
    std::size_t read(std::span<std::byte> out) override {
      std::size_t done = 0;
      while (done < out.size() && (next_ < blobs_.size() || current_)) {
        if (!current_) current_ = blobs_[next_++]->stream();
        const std::size_t count = current_->read(out.subspan(done));
        if (count == 0) current_.reset();
        done += count;
      }
      return done;
    }

   private:
    const std::vector<BlobPtr>& blobs_;
    std::size_t next_ = 0;
    std::unique_ptr<BlobStream> current_;
  };

  std::vector<BlobPtr> blobs_;
  std::vector<std::uint64_t> ends_;
};

// Returns the range of a file that holds the blobs in order, if there is one.
std::optional<StoredRange> find_one_range(const std::vector<BlobPtr>& blobs) {
  auto all = blobs.front()->raw_range();
  for (std::size_t i = 1; i < blobs.size() && all; ++i) {
    const auto next = blobs[i]->raw_range();
    if (!next || next->source != all->source || next->offset != all->offset + all->length) return std::nullopt;
    all->length += next->length;
  }
  return all;
}

}  // namespace

std::optional<std::uint64_t> count_head_rows(std::uint64_t rows, std::uint64_t heads) {
  if (heads == 0 || rows % heads != 0 || rows / heads % 2 != 0) return std::nullopt;
  return rows / heads;
}

BlobPtr reorder_rows(BlobPtr blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrder to) {
  const StoredAs* const stored = find_change(*blob, StoredAs::Change::rows_interleaved);
  if (to == RowOrder::pairs && stored != nullptr && stored->row_bytes == row_bytes && stored->head_rows == head_rows)
    return stored->blob;
  return std::make_shared<RowOrderBlob>(std::move(blob), row_bytes, head_rows, to);
}

BlobPtr reorder_columns(BlobPtr rows, unsigned bits, std::uint64_t columns, std::vector<std::uint32_t> order) {
  return std::make_shared<ColumnOrderBlob>(std::move(rows), bits, columns, std::move(order));
}

Tensor make_dense_numbers(const Tensor& tensor) {
  if (!has_float_elements(tensor))
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: it is stored as {}, expected floating-point numbers",
                                                     tensor.name, describe_storage(tensor)));
  if (info(find_element_type(tensor)).bits % 8 == 0) return make_dense_tensor(tensor);
  return make_dense_float32(tensor);
}

Tensor convert_to_whole_rows(const Tensor& tensor) {
  return has_whole_rows(tensor) ? tensor : make_dense_numbers(tensor);
}

Tensor select_rows(const Tensor& stack, std::uint64_t matrix, std::uint64_t first, std::uint64_t step) {
  const std::uint64_t rows = stack.shape[1];
  return make_row_view(stack, {{rows / step}, {step}, matrix * rows + first}, {rows / step});
}

Tensor interleave_rows(const Tensor& stack, std::uint64_t turns) {
  const auto [count, rows] = std::pair(stack.shape[0] / turns, stack.shape[1]);
  return make_row_view(stack, {{count, rows, turns}, {turns * rows, 1, rows}}, {count, rows * turns});
}

Tensor stack_tensors(const std::vector<Tensor>& tensors) {
  const bool alike = std::ranges::all_of(tensors, [&](const Tensor& tensor) {
    return has_whole_rows(tensor) && !is_mxfp4(tensor) && are_stored_alike(tensor, tensors.front());
  });
  if (!alike) {
    std::vector<Tensor> numbers;
    std::ranges::transform(tensors, std::back_inserter(numbers), make_dense_numbers);
    const bool common =
        std::ranges::all_of(numbers, [&](const Tensor& tensor) { return are_stored_alike(tensor, numbers.front()); });
    for (Tensor& tensor : numbers) {
      if (!common) tensor = make_dense_float32(tensor);
    }
    return stack_tensors(numbers);
  }
  Tensor result = tensors.front();
  result.shape = {tensors.size()};
  for (const std::uint64_t length : tensors.front().shape) result.shape.push_back(length);
  for (std::size_t i = 0; i < result.parts.size(); ++i) {
    std::vector<BlobPtr> blobs;
    for (const Tensor& tensor : tensors) {
      check_parts(tensor);
      blobs.emplace_back(tensor.parts[i].blob);
    }
    result.parts[i] = replace_blob(result.parts[i], make_joined_blob(std::move(blobs)));
  }
  return result;
}

BlobPtr make_joined_blob(std::vector<BlobPtr> blobs) {
  if (blobs.size() == 1) return std::move(blobs.front());
  if (const auto range = find_one_range(blobs)) return make_source_blob(range->source, range->offset, range->length);
  return std::make_shared<JoinedBlob>(std::move(blobs));
}

}  // namespace poise
