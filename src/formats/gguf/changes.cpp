#include "formats/gguf/changes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "formats/losses.hpp"
#include "tensor/block_layout.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/row_order.hpp"
#include "views/strided.hpp"

namespace poise::gguf {
namespace {

Tensor reorder_head_rows(Tensor tensor, Change change, const Heads& heads, RowOrder to) {
  Part& data = tensor.parts.front();
  if (data.blob->size() == 0) return tensor;
  const ErrorKind kind = to == RowOrder::halves ? ErrorKind::invalid_file : ErrorKind::unsupported;
  const std::uint64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
  const std::uint64_t count = change == Change::queries ? heads.queries : heads.keys;
  if (count == 0)
    throw Error(
        kind,
        fmt::format("tensor {}: the order of its rows depends on the number of heads, which the configuration lacks",
                    tensor.name));
  const auto head_rows = count_head_rows(rows, count);
  if (!head_rows)
    throw Error(kind, fmt::format("tensor {}: expected {} heads with an even number of rows each, found {} rows",
                                  tensor.name, count, rows));
  const std::uint64_t row_bytes = data.blob->size() / rows;
  data.blob = reorder_rows(std::move(data.blob), row_bytes, *head_rows, to);
  return tensor;
}

Tensor shift_norm(const Tensor& tensor, UnitShift shift) {
  return make_dense(tensor.name, tensor.shape, DType::f32, shift_by_one(make_dense_blob(tensor, DType::f32), shift));
}

// Returns true for plain numbers, and for blocks along columns, which transposing turns into blocks along rows.
bool is_transposable(const Tensor& tensor) {
  return tensor.layout == Layout::dense ||
         (get_block_type(tensor.layout) != nullptr && get_block_direction(tensor.layout) == BlocksAlong::columns);
}

}  // namespace

std::optional<Tensor> undo_change(Tensor tensor, Change change, const Heads& heads) {
  switch (change) {
    case Change::none:
    case Change::stacked: return tensor;
    case Change::queries:
    case Change::keys: return reorder_head_rows(std::move(tensor), change, heads, RowOrder::halves);
    case Change::plus_one:
      if (!has_float_elements(tensor)) return std::nullopt;
      return shift_norm(tensor, UnitShift::taken_away);
    case Change::transposed:
      if (tensor.shape.size() != 2 || (!has_float_elements(tensor) && get_block_type(tensor.layout) == nullptr))
        return std::nullopt;
      return transpose_view(std::move(tensor));
  }
  return std::nullopt;
}

Tensor apply_change(Tensor tensor, Change change, const Heads& heads) {
  switch (change) {
    case Change::none:
    case Change::stacked: break;
    case Change::queries:
    case Change::keys: return reorder_head_rows(std::move(tensor), change, heads, RowOrder::pairs);
    case Change::plus_one:
      if (!has_float_elements(tensor))
        throw Error(ErrorKind::unsupported,
                    fmt::format("gguf cannot hold {}: the weights of this norm are {}, expected floating-point numbers",
                                tensor.name, describe_storage(tensor)));
      return shift_norm(tensor, UnitShift::added);
    case Change::transposed:
      if (tensor.shape.size() == 2 && is_transposable(tensor)) return transpose_view(std::move(tensor));
      refuse_tensor("gguf", tensor,
                    "llama.cpp stores the matrix transposed, and blocks along its rows cannot be transposed");
  }
  return tensor;
}

namespace {

class PlusOne final : public Blob {
 public:
  PlusOne(BlobPtr floats, UnitShift shift)
      : floats_(std::move(floats)), shift_(shift), stored_{.change = StoredAs::Change::one_added, .blob = floats_} {}

  std::uint64_t size() const override { return floats_->size(); }
  bool seekable() const override { return floats_->seekable(); }
  bool decodable() const override { return floats_->decodable(); }

  std::optional<Stored> stored() const override {
    auto stored = floats_->stored();
    if (stored) stored->encoding += shift_ == UnitShift::added ? ", plus one" : ", less one";
    return stored;
  }
  const StoredAs* stored_as() const override { return shift_ == UnitShift::taken_away ? &stored_ : nullptr; }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return floats_->stored_byte(offset); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::byte, 4096> buffer{};
    read_units(offset, out, sizeof(float), buffer.size() / sizeof(float), [&](std::uint64_t first, std::size_t count) {
      const std::span<std::byte> bytes = std::span(buffer).first(count * sizeof(float));
      floats_->read(first * sizeof(float), bytes);
      for (std::byte* at = bytes.data(); at != bytes.data() + bytes.size(); at += sizeof(float))
        store_le(at, load_le<float>(at) + (shift_ == UnitShift::added ? 1.0F : -1.0F));
      return bytes;
    });
  }

 private:
  BlobPtr floats_;
  UnitShift shift_;
  StoredAs stored_;
};

}  // namespace

BlobPtr shift_by_one(BlobPtr floats, UnitShift shift) {
  const StoredAs* const stored = find_change(*floats, StoredAs::Change::one_added);
  if (shift == UnitShift::added && stored != nullptr) return stored->blob;
  return std::make_shared<PlusOne>(std::move(floats), shift);
}

}  // namespace poise::gguf
