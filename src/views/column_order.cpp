#include "views/column_order.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace poise {
namespace {

// The elements of a row in that order, several in a byte.
template <unsigned kBits>
void take_codes(const std::byte* row, const std::uint32_t* order, std::span<std::byte> out) {
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

// The same of whole bytes.
void take_elements(const std::byte* row, std::size_t bytes, const std::uint32_t* order, std::span<std::byte> out) {
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

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> row(row_bytes_);
    std::vector<std::byte> made(made_bytes_);
    while (!out.empty()) {
      const auto skipped = static_cast<std::size_t>(offset % made_bytes_);
      const std::size_t count = std::min(out.size(), made_bytes_ - skipped);
      rows_->read(offset / made_bytes_ * row_bytes_, row);
      const bool is_whole = count == made_bytes_;
      take(row.data(), is_whole ? out.first(count) : std::span(made));
      if (!is_whole) std::copy_n(made.data() + skipped, count, out.data());
      offset += count;
      out = out.subspan(count);
    }
  }

 private:
  void take(const std::byte* row, std::span<std::byte> out) const {
    switch (bits_) {
      case 2: return take_codes<2>(row, order_.data(), out);
      case 4: return take_codes<4>(row, order_.data(), out);
      case 8: return take_codes<8>(row, order_.data(), out);
      default: return take_elements(row, bits_ / 8, order_.data(), out);
    }
  }

  BlobPtr rows_;
  unsigned bits_;
  std::size_t row_bytes_;
  std::size_t made_bytes_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

BlobPtr reorder_columns(BlobPtr rows, unsigned bits, std::uint64_t columns, std::vector<std::uint32_t> order) {
  return std::make_shared<ColumnOrderBlob>(std::move(rows), bits, columns, std::move(order));
}

}  // namespace poise
