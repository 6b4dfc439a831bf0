#include "views/boxes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"

namespace poise {
namespace {

constexpr std::uint32_t kNoBox = UINT32_MAX;

[[noreturn]] void fail(const std::string& problem) { throw Error(ErrorKind::invalid_file, problem); }

// Divides the tensor into cells at the edges of all boxes; each cell belongs to one box.
class Grid {
 public:
  Grid(const Shape& shape, const std::vector<Box>& boxes) : edges_(shape.size()) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      for (const Box& box : boxes) {
        edges_[d].push_back(box.offsets[d]);
        edges_[d].push_back(box.offsets[d] + box.sizes[d]);
      }
      std::ranges::sort(edges_[d]);
      edges_[d].erase(std::unique(edges_[d].begin(), edges_[d].end()), edges_[d].end());
      if (edges_[d].front() != 0 || edges_[d].back() != shape[d])
        fail(fmt::format("the parts cover {} to {} of dimension {}, expected 0 to {}", edges_[d].front(),
                         edges_[d].back(), d, shape[d]));
    }
    // A regular grid of n boxes has n cells; uneven shares of ranks make a few more.
    constexpr std::uint64_t kCellsOfBox = 64;
    std::uint64_t cells = 1;
    for (const auto& edges : edges_) {
      cells = checked_mul(cells, edges.size() - 1).value_or(UINT64_MAX);
      if (cells > kCellsOfBox * boxes.size())
        throw Error(ErrorKind::unsupported,
                    fmt::format("its {} parts do not form a grid, so Poise cannot join them", boxes.size()));
    }
    boxes_.assign(static_cast<std::size_t>(cells), kNoBox);
    for (std::size_t i = 0; i < boxes.size(); ++i) mark_cells(boxes[i], static_cast<std::uint32_t>(i));
    if (std::ranges::find(boxes_, kNoBox) != boxes_.end()) fail("its parts do not cover all elements");
  }

  // Returns the number of the box that has the element at these indices.
  std::size_t find_box(const Shape& indices) const {
    std::size_t cell = 0;
    for (std::size_t d = 0; d < edges_.size(); ++d) cell = cell * (edges_[d].size() - 1) + find_interval(d, indices[d]);
    return boxes_[cell];
  }

 private:
  std::size_t find_interval(std::size_t dimension, std::uint64_t index) const {
    const auto& edges = edges_[dimension];
    return static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), index) - edges.begin()) - 1;
  }

  void mark_cells(const Box& box, std::uint32_t number) {
    Shape first(edges_.size());
    Shape last(edges_.size());
    for (std::size_t d = 0; d < edges_.size(); ++d) {
      first[d] = find_interval(d, box.offsets[d]);
      last[d] = find_interval(d, box.offsets[d] + box.sizes[d] - 1);
    }
    Shape at = first;
    while (true) {
      std::size_t cell = 0;
      for (std::size_t d = 0; d < edges_.size(); ++d) cell = cell * (edges_[d].size() - 1) + at[d];
      if (boxes_[cell] != kNoBox)
        fail(fmt::format("two of its parts overlap, the second at [{}]", fmt::join(box.offsets, ", ")));
      boxes_[cell] = number;
      std::size_t d = edges_.size();
      while (d > 0 && at[d - 1] == last[d - 1]) {
        at[d - 1] = first[d - 1];
        --d;
      }
      if (d == 0) return;
      ++at[d - 1];
    }
  }

  std::vector<std::vector<std::uint64_t>> edges_;
  std::vector<std::uint32_t> boxes_;
};

class BoxBlob final : public Blob {
 public:
  BoxBlob(const Shape& shape, std::vector<Box> boxes, unsigned item_bytes)
      : shape_(shape), boxes_(std::move(boxes)), item_(item_bytes), grid_(shape, boxes_), size_(item_bytes) {
    for (const std::uint64_t dimension : shape_) size_ *= dimension;
  }

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const Run run = find_run(offset);
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(run.bytes, out.size()));
      boxes_[run.box].elements->read(run.offset, out.first(count));
      offset += count;
      out = out.subspan(count);
    }
  }

  bool seekable() const override {
    return std::ranges::all_of(boxes_, [](const Box& box) { return box.elements->seekable(); });
  }

  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    const Run run = find_run(offset);
    return boxes_[run.box].elements->stored_byte(run.offset);
  }

 private:
  // Names bytes that follow each other in the tensor and in a box.
  struct Run {
    std::size_t box;
    std::uint64_t offset;  // the byte offset in the box
    std::uint64_t bytes;
  };

  Run find_run(std::uint64_t offset) const {
    Shape indices(shape_.size());
    std::uint64_t rest = offset / item_;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      indices[d] = rest % shape_[d];
      rest /= shape_[d];
    }
    const std::size_t number = grid_.find_box(indices);
    const Box& box = boxes_[number];
    // A run extends over the innermost dimensions in which the box has the tensor's size, and the next outer one. In
    // these dimensions, elements are contiguous both in the tensor and in the box.
    std::uint64_t at = 0;        // the index of the element in the box
    std::uint64_t stride = 1;    // the distance of neighbours in the box along dimension `d`
    std::uint64_t inner = 0;     // the number of elements before `at` in the run's dimensions
    std::uint64_t elements = 1;  // the number of elements from `at` to the end of the run
    bool is_whole = true;        // true if the box has the tensor's size in all inner dimensions
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const std::uint64_t index = indices[d] - box.offsets[d];
      at += index * stride;
      if (is_whole) {
        inner += index * stride;
        elements = box.sizes[d] * stride - inner;
      }
      is_whole = is_whole && box.sizes[d] == shape_[d];
      stride *= box.sizes[d];
    }
    const std::uint64_t into = offset % item_;
    return {number, at * item_ + into, elements * item_ - into};
  }

  Shape shape_;
  std::vector<Box> boxes_;
  unsigned item_;
  Grid grid_;
  std::uint64_t size_;
};

// Throws an error if a box lies outside of the tensor, or its blob has another size.
void check_box(const Shape& shape, const Box& box, unsigned item_bytes) {
  if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size())
    fail(fmt::format("a part has {} dimensions, expected {}", box.offsets.size(), shape.size()));
  std::uint64_t bytes = item_bytes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.offsets[d] > shape[d] || box.sizes[d] > shape[d] - box.offsets[d])
      fail(fmt::format("a part has {} elements from {} on in dimension {}, which has {}", box.sizes[d], box.offsets[d],
                       d, shape[d]));
    bytes *= box.sizes[d];
  }
  if (box.elements->size() != bytes)
    fail(fmt::format("the part at [{}] has {} bytes, expected {}", fmt::join(box.offsets, ", "), box.elements->size(),
                     bytes));
}

}  // namespace

BlobPtr make_box_blob(const Shape& shape, std::vector<Box> boxes, unsigned item_bytes) {
  for (const Box& box : boxes) check_box(shape, box, item_bytes);
  // Ranks without a share save empty boxes.
  std::erase_if(boxes, [](const Box& box) { return std::ranges::find(box.sizes, 0U) != box.sizes.end(); });
  if (std::ranges::find(shape, 0U) != shape.end()) return make_memory_blob({}, "");
  if (boxes.empty()) fail("it has no parts");
  if (boxes.size() == 1 && boxes.front().sizes == shape) return boxes.front().elements;
  return std::make_shared<const BoxBlob>(shape, std::move(boxes), item_bytes);
}

}  // namespace poise
