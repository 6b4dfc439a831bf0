#include "views/strided.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <poise/error.hpp>

namespace poise {
namespace {

// Holds some bytes of the blob. Elements that begin in [begin, end) are completely in it.
struct Window {
  std::uint64_t begin;
  std::uint64_t end;
  const std::byte* bytes;  // the bytes from `begin` on

  bool holds(std::uint64_t first, std::uint64_t last) const { return first >= begin && last < end; }
};

// Describes a dimension of a box, with its stride in the copy.
struct Axis {
  std::uint64_t count;
  std::uint64_t stride;
  std::ptrdiff_t to_stride;
  std::uint64_t reach;  // the distance from the first to the last element of the axes after this one
};

// Copies a box. The constructor reverses negative strides and sorts the axes by descending strides, so that copy()
// finds the elements in a window without a search.
class Box {
 public:
  Box(const PlacedBox& placed, std::size_t item) : item_(item), position_(placed.position), to_(placed.to) {
    auto to_stride = static_cast<std::ptrdiff_t>(item);
    for (std::size_t d = placed.dimensions.size(); d-- > 0;) {
      const auto [count, stride] = placed.dimensions[d];
      if (stride < 0) {
        position_ = move_position(position_, count - 1, stride);
        to_ += static_cast<std::ptrdiff_t>(count - 1) * to_stride;
      }
      axes_.push_back({count, get_magnitude(stride), stride < 0 ? -to_stride : to_stride, 0});
      to_stride *= static_cast<std::ptrdiff_t>(count);
    }
    std::ranges::stable_sort(axes_, std::ranges::greater(), &Axis::stride);
    for (std::size_t d = axes_.size(); d-- > 0; reach_ += (axes_[d].count - 1) * axes_[d].stride)
      axes_[d].reach = reach_;
  }

  std::uint64_t first() const { return position_; }
  std::uint64_t last() const { return position_ + reach_; }

  // Copies the elements that begin in the window.
  void copy(const Window& window) const { copy(window, 0, position_, to_); }

 private:
  void copy(const Window& window, std::size_t d, std::uint64_t position, std::byte* to) const {
    if (d == axes_.size()) {
      if (window.holds(position, position)) std::memcpy(to, window.bytes + (position - window.begin), item_);
      return;
    }
    const Axis& axis = axes_[d];
    // Indices from `index` to `end` are at least partly in the window.
    std::uint64_t index = 0;
    std::uint64_t end = axis.count;
    if (axis.stride == 0) {
      if (position + axis.reach < window.begin || position >= window.end) return;
    } else {
      if (position + axis.reach < window.begin)
        index = (window.begin - position - axis.reach + axis.stride - 1) / axis.stride;
      end = position < window.end ? std::min(end, (window.end - position - 1) / axis.stride + 1) : 0;
    }
    const auto at = [&](std::uint64_t i) { return position + i * axis.stride; };
    const auto place = [&](std::uint64_t i) { return to + static_cast<std::ptrdiff_t>(i) * axis.to_stride; };
    while (index < end) {
      // Rows that are whole in the window are copied together.
      if (d + 2 == axes_.size() && window.holds(at(index), at(index) + axis.reach)) {
        std::uint64_t whole = index + 1;
        while (whole < end && window.holds(at(whole), at(whole) + axis.reach)) ++whole;
        copy_matrix(window.bytes + (at(index) - window.begin), axis, whole - index, axes_[d + 1], place(index));
        index = whole;
      } else if (d + 1 == axes_.size()) {
        return copy_row(window.bytes + (at(index) - window.begin), axis, end - index, place(index));
      } else {
        copy(window, d + 1, at(index), place(index));
        ++index;
      }
    }
  }

  void copy_row(const std::byte* from, const Axis& axis, std::uint64_t count, std::byte* to) const {
    if (axis.stride == item_ && axis.to_stride == static_cast<std::ptrdiff_t>(item_)) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * item_);
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(to + static_cast<std::ptrdiff_t>(i) * axis.to_stride, from + i * axis.stride, item_);
  }

  // Copies some columns of all rows at a time, so that neighbours in the copy are written together.
  void copy_matrix(const std::byte* from, const Axis& rows, std::uint64_t count, const Axis& row, std::byte* to) const {
    constexpr std::uint64_t kTile = 64;
    for (std::uint64_t left = 0; left < row.count; left += kTile) {
      const std::uint64_t width = std::min(kTile, row.count - left);
      for (std::uint64_t i = 0; i < count; ++i) {
        copy_row(
            from + i * rows.stride + left * row.stride, row, width,
            to + static_cast<std::ptrdiff_t>(i) * rows.to_stride + static_cast<std::ptrdiff_t>(left) * row.to_stride);
      }
    }
  }

  std::size_t item_;
  std::uint64_t position_;
  std::byte* to_;
  std::vector<Axis> axes_;
  std::uint64_t reach_ = 0;
};

}  // namespace

void gather_from_stream(const Blob& blob, std::span<const PlacedBox> placed, std::size_t item) {
  constexpr std::size_t kWindowBytes = 1 << 20;
  std::vector<Box> boxes;
  std::uint64_t last = 0;
  for (const PlacedBox& box : placed) last = std::max(last, boxes.emplace_back(box, item).last());
  if (boxes.empty()) return;
  const std::unique_ptr<BlobStream> stream = blob.stream();
  std::vector<std::byte> bytes(kWindowBytes + item - 1);
  std::size_t held = 0;  // bytes that the last window left: the beginning of an element
  for (std::uint64_t begin = 0; begin <= last;) {
    while (held < bytes.size()) {
      const std::size_t read = stream->read(std::span(bytes).subspan(held));
      if (read == 0) break;
      held += read;
    }
    if (held < item) throw Error(ErrorKind::internal, "a stream ends before its blob's last element", {});
    const std::size_t starts = held - item + 1;
    const Window window{begin, begin + starts, bytes.data()};
    for (const Box& box : boxes) {
      if (box.first() < window.end && box.last() >= window.begin) box.copy(window);
    }
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(starts), bytes.begin() + static_cast<std::ptrdiff_t>(held),
              bytes.begin());
    held -= starts;
    begin += starts;
  }
}

}  // namespace poise
