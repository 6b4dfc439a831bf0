#include "views/strided.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "bytes/checked.hpp"

namespace poise {
namespace {

// Returns true if the outer dimension continues where the inner one ends.
bool is_without_gap(const Dimension& outer, const Dimension& inner) {
  std::int64_t whole = 0;
  if (inner.count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
  return !__builtin_mul_overflow(static_cast<std::int64_t>(inner.count), inner.stride, &whole) && outer.stride == whole;
}

// Copies elements of one size from strided to contiguous places.
template <std::size_t kItem>
struct Items {
  static void copy_row(const std::byte* from, const Dimension& row, std::byte* to) {
    if (row.stride == static_cast<std::int64_t>(kItem)) {
      std::memcpy(to, from, static_cast<std::size_t>(row.count) * kItem);
      return;
    }
    for (std::uint64_t i = 0; i < row.count; ++i)
      std::memcpy(to + i * kItem, move_position(from, i, row.stride), kItem);
  }

  // Copies a matrix whose columns are contiguous, or nearly, in tiles. A whole tile has at least 64 bytes, a cache
  // line, in both directions.
  static void copy_columns(const std::byte* from, const Dimension& rows, const Dimension& row, std::byte* to,
                           std::size_t to_stride) {
    constexpr std::uint64_t kTile = std::max<std::size_t>(16, 64 / kItem);
    for (std::uint64_t top = 0; top < rows.count; top += kTile) {
      const std::uint64_t bottom = std::min(rows.count, top + kTile);
      for (std::uint64_t left = 0; left < row.count; left += kTile) {
        const std::uint64_t width = std::min(kTile, row.count - left);
        const std::byte* const corner = move_position(from, left, row.stride);
        for (std::uint64_t r = top; r < bottom; ++r)
          copy_row(move_position(corner, r, rows.stride), {width, row.stride}, to + r * to_stride + left * kItem);
      }
    }
  }
};

// Copies a box (elements at equal distances along each dimension) to contiguous memory. If the smallest stride is not
// that of the last dimension, these two dimensions form matrices, which are copied in tiles.
template <std::size_t kItem>
class BoxCopy {
 public:
  explicit BoxCopy(std::span<const Dimension> box) : box_(box), to_strides_(box.size()) {
    std::size_t bytes = kItem;
    for (std::size_t d = box.size(); d-- > 0; bytes *= static_cast<std::size_t>(box[d].count)) to_strides_[d] = bytes;
    const auto is_closer = [](const Dimension& a, const Dimension& b) {
      return get_magnitude(a.stride) < get_magnitude(b.stride);
    };
    closest_ = static_cast<std::size_t>(std::ranges::min_element(box, is_closer) - box.begin());
  }

  void copy(const std::byte* from, std::byte* to) const { copy_dimension(0, from, to); }

 private:
  void copy_dimension(std::size_t d, const std::byte* from, std::byte* to) const {
    const std::size_t last = box_.size() - 1;
    if (d == closest_ && d != last) ++d;
    if (d < last) {
      for (std::uint64_t i = 0; i < box_[d].count; ++i)
        copy_dimension(d + 1, move_position(from, i, box_[d].stride), to + i * to_strides_[d]);
    } else if (closest_ == last) {
      Items<kItem>::copy_row(from, box_[last], to);
    } else {
      Items<kItem>::copy_columns(from, box_[closest_], box_[last], to, to_strides_[closest_]);
    }
  }

  std::span<const Dimension> box_;
  std::vector<std::size_t> to_strides_;
  std::size_t closest_;  // the dimension with the smallest stride
};

// Copies elements whose size has no specialized loop. Moves `to` to the end of the copy.
void copy_any_size(std::span<const Dimension> box, std::size_t item, const std::byte* from, std::byte*& to) {
  if (box.empty()) {
    std::memcpy(to, from, item);
    to += item;
    return;
  }
  for (std::uint64_t i = 0; i < box[0].count; ++i)
    copy_any_size(box.subspan(1), item, move_position(from, i, box[0].stride), to);
}

}  // namespace

std::optional<ElementRange> find_element_range(std::uint64_t first, std::span<const Dimension> dimensions,
                                               std::uint64_t item) {
  ElementRange range{first, first};
  for (const Dimension& dimension : dimensions) {
    const auto reach = checked_mul(dimension.count - 1, get_magnitude(dimension.stride));
    if (!reach) return std::nullopt;
    if (dimension.stride < 0) {
      if (*reach > range.begin) return std::nullopt;
      range.begin -= *reach;
    } else {
      const auto end = checked_add(range.end, *reach);
      if (!end) return std::nullopt;
      range.end = *end;
    }
  }
  const auto end = checked_add(range.end, item);
  if (!end) return std::nullopt;
  range.end = *end;
  return range;
}

Dimensions merge_dimensions(const Strided& layout) {
  Dimensions result;
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    const Dimension next{layout.shape[d], layout.strides[d]};
    if (next.count == 1) continue;
    if (!result.empty() && is_without_gap(result.back(), next)) {
      result.back() = {result.back().count * next.count, next.stride};
    } else {
      result.push_back(next);
    }
  }
  return result;
}

void copy_box(std::span<const Dimension> box, std::size_t item, const std::byte* from, std::byte* to) {
  switch (item) {
    case 1: return BoxCopy<1>(box).copy(from, to);
    case 2: return BoxCopy<2>(box).copy(from, to);
    case 4: return BoxCopy<4>(box).copy(from, to);
    case 8: return BoxCopy<8>(box).copy(from, to);
    case 16: return BoxCopy<16>(box).copy(from, to);
    default: copy_any_size(box, item, from, to);
  }
}

void copy_columns(const std::byte* from, const Dimension& rows, const Dimension& row, std::size_t item, std::byte* to,
                  std::size_t to_stride) {
  switch (item) {
    case 1: return Items<1>::copy_columns(from, rows, row, to, to_stride);
    case 2: return Items<2>::copy_columns(from, rows, row, to, to_stride);
    case 4: return Items<4>::copy_columns(from, rows, row, to, to_stride);
    case 8: return Items<8>::copy_columns(from, rows, row, to, to_stride);
    default: return Items<16>::copy_columns(from, rows, row, to, to_stride);
  }
}

}  // namespace poise
