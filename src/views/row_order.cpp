#include "views/row_order.hpp"

#include <algorithm>
#include <utility>

namespace poise {
namespace {

class RowOrderBlob final : public Blob {
 public:
  explicit RowOrderBlob(ReorderedRows rows) : rows_(std::move(rows)) {}

  std::uint64_t size() const override { return rows_.blob->size(); }
  bool seekable() const override { return rows_.blob->seekable(); }

  std::optional<Stored> stored() const override {
    auto stored = rows_.blob->stored();
    if (stored)
      stored->encoding +=
          rows_.to == RowOrder::halves ? ", rows in the order of llama.cpp" : ", rows in the order of transformers";
    return stored;
  }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    return rows_.blob->stored_byte(place(offset));
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::size_t bytes = std::min<std::size_t>(out.size(), rows_.row_bytes - offset % rows_.row_bytes);
      rows_.blob->read(place(offset), out.first(bytes));
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

  const ReorderedRows& rows() const { return rows_; }

 private:
  std::uint64_t place(std::uint64_t offset) const {
    return rows_.source_of(offset / rows_.row_bytes) * rows_.row_bytes + offset % rows_.row_bytes;
  }

  ReorderedRows rows_;
};

}  // namespace

std::optional<std::uint64_t> rows_of_head(std::uint64_t rows, std::uint64_t heads) {
  if (heads == 0 || rows % heads != 0 || rows / heads % 2 != 0) return std::nullopt;
  return rows / heads;
}

BlobPtr reorder_rows(BlobPtr blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrder to) {
  if (const auto before = reordered_rows(*blob);
      before && before->row_bytes == row_bytes && before->head_rows == head_rows && before->to != to) {
    return before->blob;
  }
  return BlobPtr(std::make_shared<RowOrderBlob>(ReorderedRows{std::move(blob), row_bytes, head_rows, to}));
}

std::optional<ReorderedRows> reordered_rows(const Blob& blob) {
  const auto* const reordered = dynamic_cast<const RowOrderBlob*>(&blob);
  if (reordered == nullptr) return std::nullopt;
  return reordered->rows();
}

}  // namespace poise
