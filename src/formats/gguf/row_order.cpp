#include "formats/gguf/row_order.hpp"

#include <algorithm>
#include <utility>

namespace poise::gguf {
namespace {

class ReorderedRows final : public Blob {
 public:
  ReorderedRows(BlobPtr rows, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrderOf to)
      : rows_(std::move(rows)), row_bytes_(row_bytes), head_rows_(head_rows), to_(to) {}

  std::uint64_t size() const override { return rows_->size(); }
  bool seekable() const override { return rows_->seekable(); }

  std::optional<Stored> stored() const override {
    auto stored = rows_->stored();
    if (stored)
      stored->encoding +=
          to_ == RowOrderOf::transformers ? ", rows in the order of llama.cpp" : ", rows in the order of transformers";
    return stored;
  }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    return rows_->stored_byte(source_of(offset / row_bytes_) * row_bytes_ + offset % row_bytes_);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t row = offset / row_bytes_;
      const std::uint64_t begin = offset % row_bytes_;
      const std::size_t bytes = std::min<std::size_t>(out.size(), row_bytes_ - begin);
      rows_->read(source_of(row) * row_bytes_ + begin, out.first(bytes));
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

  bool is_inverse_of(std::uint64_t row_bytes, std::uint64_t head_rows, RowOrderOf to) const {
    return row_bytes == row_bytes_ && head_rows == head_rows_ && to != to_;
  }
  const BlobPtr& original() const { return rows_; }

 private:
  std::uint64_t source_of(std::uint64_t row) const {
    const std::uint64_t head = row / head_rows_ * head_rows_;
    const std::uint64_t at = row % head_rows_;
    const std::uint64_t half = head_rows_ / 2;
    return head + (to_ == RowOrderOf::transformers ? at % half * 2 + at / half : at % 2 * half + at / 2);
  }

  BlobPtr rows_;
  std::uint64_t row_bytes_;
  std::uint64_t head_rows_;
  RowOrderOf to_;
};

}  // namespace

std::optional<std::uint64_t> rows_of_head(std::uint64_t rows, std::uint64_t heads) {
  if (heads == 0 || rows % heads != 0 || rows / heads % 2 != 0) return std::nullopt;
  return rows / heads;
}

HeldBlob reorder_rows(HeldBlob blob, std::uint64_t row_bytes, std::uint64_t head_rows, RowOrderOf to) {
  if (const auto* before = dynamic_cast<const ReorderedRows*>(blob.get());
      before != nullptr && before->is_inverse_of(row_bytes, head_rows, to)) {
    return before->original();
  }
  return BlobPtr(std::make_shared<ReorderedRows>(std::move(blob), row_bytes, head_rows, to));
}

}  // namespace poise::gguf
