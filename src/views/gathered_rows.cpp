#include "views/gathered_rows.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <oneapi/tbb/task_arena.h>

#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kSlabBytes = 64 << 20;
constexpr std::size_t kMostPlaces = 1 << 16;  // the largest number of source rows in a pass, unless one row has more

class GatheredRowsBlob final : public FloatBlob {
 public:
  GatheredRowsBlob(std::vector<BlobPtr> numbers, RowSources rows, std::uint64_t columns)
      : FloatBlob(rows.size() * columns), numbers_(std::move(numbers)), rows_(std::move(rows)), columns_(columns) {
    seekable_ = std::ranges::all_of(numbers_, [](const BlobPtr& blob) { return blob->seekable(); });
  }

  bool seekable() const override { return seekable_; }
  bool decodable() const override {
    return std::ranges::all_of(numbers_, [](const BlobPtr& blob) { return blob->decodable(); });
  }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    while (!out.empty()) {
      const auto row = static_cast<std::size_t>(first / columns_);
      const std::uint64_t column = first % columns_;
      const std::size_t count = seekable_ ? read_in_place(row, column, out) : read_slab(row, column, out);
      first += count;
      out = out.subspan(count);
    }
  }

  void drop_caches() const override {
    const std::scoped_lock lock(mutex_);
    slab_.reset();
  }

 private:
  // Holds the numbers of rows [begin, end) of the result.
  struct Slab {
    std::size_t begin;
    std::size_t end;
    std::vector<float> numbers;
  };

  // Reads elements of a row of the result. One read also includes the next rows if they are copies of the rows that
  // follow in the same matrix. Returns the number of elements.
  std::size_t read_in_place(std::size_t row, std::uint64_t column, std::span<float> out) const {
    const std::span<const RowSource> places = rows_[row];
    std::size_t count = std::min<std::uint64_t>(columns_ - column, out.size());
    if (places.size() == 1) {
      const RowSource place = places.front();
      for (std::uint32_t next = 1;
           count < out.size() && row + next < rows_.size() && is_next_row(row + next, place, next); ++next)
        count = std::min<std::uint64_t>(count + columns_, out.size());
      read_elements(place, column, out.first(count));
      return count;
    }
    std::vector<double> sums(count);
    std::vector<float> numbers(count);
    for (const RowSource& place : places) {
      read_elements(place, column, numbers);
      for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(numbers[i]);
    }
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(sums[i] / static_cast<double>(places.size()));
    return count;
  }

  bool is_next_row(std::size_t row, const RowSource& place, std::uint32_t distance) const {
    return rows_[row].size() == 1 && rows_[row].front().matrix == place.matrix &&
           rows_[row].front().row == place.row + distance;
  }

  void read_elements(const RowSource& place, std::uint64_t column, std::span<float> out) const {
    numbers_[place.matrix]->read((place.row * columns_ + column) * sizeof(float), std::as_writable_bytes(out));
  }

  std::size_t read_slab(std::size_t row, std::uint64_t column, std::span<float> out) const {
    const std::shared_ptr<const Slab> slab = load_slab(row);
    const auto begin = static_cast<std::size_t>((row - slab->begin) * columns_ + column);
    const std::size_t count = std::min(out.size(), slab->numbers.size() - begin);
    std::copy_n(slab->numbers.begin() + static_cast<std::ptrdiff_t>(begin), count, out.begin());
    return count;
  }

  std::shared_ptr<const Slab> load_slab(std::size_t row) const {
    const std::scoped_lock lock(mutex_);
    if (slab_ == nullptr || row < slab_->begin || row >= slab_->end) {
      slab_.reset();
      // Isolated: a thread that waits for others here must not begin another task, which may wait for this lock.
      oneapi::tbb::this_task_arena::isolate([&] { slab_ = std::make_shared<const Slab>(gather_slab(row)); });
    }
    return slab_;
  }

  // Gathers the rows from `begin` on whose places fit kSlabBytes and kMostPlaces, but at least one row.
  Slab gather_slab(std::size_t begin) const {
    const std::uint64_t row_bytes = columns_ * sizeof(float);
    const std::uint64_t most = std::min<std::uint64_t>(kSlabBytes / row_bytes, kMostPlaces);
    std::size_t end = begin + 1;
    std::size_t places = rows_[begin].size();
    for (; end < rows_.size() && places + rows_[end].size() <= most; ++end) places += rows_[end].size();
    std::vector<float> numbers(static_cast<std::size_t>(places * columns_));
    for (std::size_t matrix = 0; matrix < numbers_.size(); ++matrix) {
      std::vector<PlacedBox> boxes;
      float* to = numbers.data();
      for (std::size_t row = begin; row < end; ++row) {
        for (const RowSource& place : rows_[row]) {
          if (place.matrix == matrix)
            boxes.push_back({place.row * row_bytes, {{columns_, sizeof(float)}}, reinterpret_cast<std::byte*>(to)});
          to += columns_;
        }
      }
      gather_from_stream(*numbers_[matrix], boxes, sizeof(float));
    }
    Slab slab{begin, end, {}};
    slab.numbers.resize(static_cast<std::size_t>((end - begin) * columns_));
    const float* from = numbers.data();
    float* to = slab.numbers.data();
    for (std::size_t row = begin; row < end; ++row, to += columns_) {
      const std::size_t count = rows_[row].size();
      for (std::uint64_t i = 0; i < columns_; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < count; ++k) sum += static_cast<double>(from[k * columns_ + i]);
        to[i] = count == 1 ? from[i] : static_cast<float>(sum / static_cast<double>(count));
      }
      from += count * columns_;
    }
    return slab;
  }

  std::vector<BlobPtr> numbers_;  // float32
  RowSources rows_;
  std::uint64_t columns_;
  bool seekable_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Slab> slab_;  // the last slab; null if all matrices are seekable
};

}  // namespace

BlobPtr gather_rows(const std::vector<Tensor>& matrices, RowSources rows) {
  const Shape& shape = matrices.front().shape;
  const std::uint64_t columns = *element_count(Shape(shape.begin() + 1, shape.end()));
  std::vector<BlobPtr> numbers;
  for (const Tensor& matrix : matrices) numbers.push_back(make_dense_blob(matrix, DType::f32));
  return std::make_shared<GatheredRowsBlob>(std::move(numbers), std::move(rows), columns);
}

}  // namespace poise
