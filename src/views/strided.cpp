#include "views/strided.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "tensor/block_layout.hpp"
#include "views/computed_blob.hpp"
#include "views/integer_blobs.hpp"

namespace poise {
namespace {

// Copies elements from bytes in memory, or from a blob that it reads.
class Elements {
 public:
  Elements(const Blob& blob, std::optional<std::span<const std::byte>> all, std::size_t item)
      : blob_(blob), all_(all), item_(item) {}

  // Copies a box whose first element is at `position`.
  void copy(std::uint64_t position, Dimensions box, std::byte* to) {
    if (box.empty()) box = {{1, static_cast<std::int64_t>(item_)}};
    if (all_) return copy_box(box, item_, all_->data() + position, to);
    read(position, box, to);
  }

 private:
  // Reads the gaps between elements, too. If they are large, splits the outermost dimension.
  void read(std::uint64_t position, Dimensions& box, std::byte* to) {
    std::uint64_t wanted = item_;
    for (const Dimension& dimension : box) wanted *= dimension.count;
    const ElementRange range = find_element_range(position, box, item_).value();
    if (range.size() <= std::max(kLeastBytes, kMostWaste * wanted)) {
      bytes_.resize(static_cast<std::size_t>(range.size()));
      blob_.read(range.begin, bytes_);
      return copy_box(box, item_, bytes_.data() + (position - range.begin), to);
    }
    const auto cut = std::ranges::find_if(box, [](const Dimension& dimension) { return dimension.count > 1; });
    const Dimension whole = *cut;
    const std::uint64_t half = whole.count / 2;
    cut->count = half;
    read(position, box, to);
    cut->count = whole.count - half;
    read(move_position(position, half, whole.stride), box, to + wanted / whole.count * half);
    cut->count = whole.count;
  }

  static constexpr std::uint64_t kLeastBytes = 4096;
  static constexpr std::uint64_t kMostWaste = 8;

  const Blob& blob_;
  std::optional<std::span<const std::byte>> all_;
  std::size_t item_;
  std::vector<std::byte> bytes_;
};

// Transposes a matrix in a blob that cannot be borrowed. Since reading one element of a stored row also decodes its
// neighbours, it reads `width` elements of every stored row at a time. They stay in memory until the thread reads
// others.
class Bands {
 public:
  // Returns std::nullopt if the last two dimensions are not a transposed matrix, if 8 columns need more memory than a
  // band may take, or if elements are not of 1, 2, 4, 8 or 16 bytes.
  static std::optional<Bands> make(std::span<const Dimension> dimensions, std::size_t item) {
    constexpr std::uint64_t kBandBytes = 4 << 20;
    constexpr std::uint64_t kLeastColumns = 8;
    constexpr std::uint64_t kClose = 64;
    if (dimensions.size() < 2 || !std::has_single_bit(item) || item > 16) return std::nullopt;
    const Dimension& columns = dimensions[dimensions.size() - 2];
    const Dimension& rows = dimensions.back();
    const std::uint64_t most = kBandBytes / item / std::max<std::uint64_t>(1, std::min(rows.count, kBandBytes));
    if (columns.stride <= 0 || get_magnitude(columns.stride) > kClose || get_magnitude(rows.stride) <= kClose ||
        most < kLeastColumns)
      return std::nullopt;
    return Bands(columns, rows, item, std::min(columns.count, most - most % kLeastColumns));
  }

  std::uint64_t rows() const { return rows_.count; }
  std::uint64_t columns() const { return columns_.count; }
  std::uint64_t find_first_column(std::uint64_t column) const { return column - column % width_; }

  // Returns the columns from `column` on, contiguous, of the matrix that begins at `position`. They are valid until the
  // thread reads others. Requires: find_first_column() returned the column.
  std::span<const std::byte> load_band(const Blob& blob, std::uint64_t position, std::uint64_t column) const {
    thread_local Band band;
    if (band.owner == owner_ && band.position == position && band.column == column) return band.bytes;
    const std::uint64_t width = std::min(width_, columns_.count - column);
    // Reading the blob may replace the thread's band, because the blob may be a StridedBlob, too.
    std::vector<std::byte> bytes(static_cast<std::size_t>(width * rows_.count * item_));
    read_band(blob, move_position(position, column, columns_.stride), width, bytes.data());
    band = {owner_, position, column, std::move(bytes)};
    return band.bytes;
  }

 private:
  struct Band {
    std::uint64_t owner = 0;
    std::uint64_t position = 0;
    std::uint64_t column = 0;
    std::vector<std::byte> bytes;
  };

  Bands(const Dimension& columns, const Dimension& rows, std::size_t item, std::uint64_t width)
      : columns_(columns), rows_(rows), item_(item), width_(width), owner_(++last_owner_) {}

  void read_band(const Blob& blob, std::uint64_t position, std::uint64_t width, std::byte* to) const {
    constexpr std::uint64_t kAtOnce = 16;
    const auto row_bytes = static_cast<std::size_t>((width - 1) * get_magnitude(columns_.stride) + item_);
    const Dimension across{width, columns_.stride};
    const std::uint64_t extent = (rows_.count - 1) * get_magnitude(rows_.stride) + row_bytes;
    if (const std::uint64_t wanted = width * rows_.count * item_;
        rows_.stride > 0 && extent <= wanted + wanted / 4) {  // one read, with the gaps between the rows
      std::vector<std::byte> all(static_cast<std::size_t>(extent));
      blob.read(position, all);
      return copy_columns(all.data(), across, rows_, item_, to, static_cast<std::size_t>(rows_.count * item_));
    }
    std::vector<std::byte> rows(kAtOnce * row_bytes);
    for (std::uint64_t r = 0; r < rows_.count; r += kAtOnce) {
      const std::uint64_t count = std::min(kAtOnce, rows_.count - r);
      for (std::uint64_t i = 0; i < count; ++i)
        blob.read(move_position(position, r + i, rows_.stride), std::span(rows).subspan(i * row_bytes, row_bytes));
      const Dimension down{count, static_cast<std::int64_t>(row_bytes)};
      copy_columns(rows.data(), across, down, item_, to + r * item_, static_cast<std::size_t>(rows_.count * item_));
    }
  }

  inline static std::atomic<std::uint64_t> last_owner_{0};

  Dimension columns_;
  Dimension rows_;
  std::size_t item_;
  std::uint64_t width_;
  std::uint64_t owner_;  // unique: shows which blob the band of a thread belongs to
};

// Holds consecutive elements (a slab) of a blob that can only be read from front to back. A slab is as large as the
// stored bytes justify. It is larger if the blob would otherwise be read many times and there is memory left. Making a
// slab takes a pass over the blob. Only one slab is in memory. It is dropped when as many bytes have been read as it
// has, or when another slab is needed.
class Slabs {
 public:
  struct Slab {
    std::uint64_t begin = 0;  // the offset of its first byte in the view
    std::vector<std::byte> bytes;
    std::uint64_t shared = 0;  // bytes reserved from get_free_memory(); the destructor returns them

    Slab() = default;
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;
    ~Slab() { get_free_memory() += shared; }
  };

  // `size` is the size of the view in bytes.
  Slabs(const Blob& blob, std::size_t item, std::uint64_t size) : size_(size) {
    const auto at = blob.stored();
    const std::uint64_t most = at ? std::max(kLeastBytes, compute_decoded_limit(at->length)) : size;
    slab_bytes_ = std::min(size, std::max<std::uint64_t>(item, most - most % item));
  }

  bool is_single() const { return slab_bytes_ == size_; }

  // Copies bytes from the slab that has byte `offset`; returns how many. make(begin, bytes) fills a slab.
  template <typename Make>
  std::size_t read(std::uint64_t offset, std::span<std::byte> out, const Make& make) const {
    const std::shared_ptr<const Slab> slab = load_slab(offset, make);
    const auto skipped = static_cast<std::size_t>(offset - slab->begin);
    const std::size_t count = std::min(out.size(), slab->bytes.size() - skipped);
    std::copy_n(slab->bytes.begin() + static_cast<std::ptrdiff_t>(skipped), count, out.begin());
    const std::scoped_lock lock(mutex_);
    if (slab_ == slab && (unread_ -= std::min<std::uint64_t>(unread_, count)) == 0) slab_.reset();
    return count;
  }

 private:
  template <typename Make>
  std::shared_ptr<const Slab> load_slab(std::uint64_t offset, const Make& make) const {
    const std::scoped_lock lock(mutex_);
    if (slab_ && slab_->begin <= offset && offset - slab_->begin < slab_->bytes.size()) return slab_;
    slab_.reset();
    auto slab = std::make_shared<Slab>();
    slab->begin = offset - offset % slab_bytes_;
    const std::uint64_t left = size_ - slab->begin;
    const std::uint64_t few_passes = std::min(left, size_ / kFewPasses + slab_bytes_);
    if (few_passes > slab_bytes_) slab->shared = reserve_free_memory(few_passes - slab_bytes_, slab_bytes_);
    slab->bytes.resize(static_cast<std::size_t>(std::min(left, slab_bytes_ + slab->shared)));
    // Isolated: a thread that waits for others here must not begin another task, which may wait for this lock.
    oneapi::tbb::this_task_arena::isolate([&] { make(slab->begin, std::span(slab->bytes)); });
    unread_ = slab->bytes.size();
    return slab_ = std::move(slab);
  }

  // Returns how many bytes all views of the program may still use together, besides those that each may always use.
  static std::atomic<std::uint64_t>& get_free_memory() {
    static std::atomic<std::uint64_t> bytes = kSharedBytes;
    return bytes;
  }

  // Reserves at most `wanted` bytes of free memory, in multiples of `unit`; returns how many.
  static std::uint64_t reserve_free_memory(std::uint64_t wanted, std::uint64_t unit) {
    std::uint64_t left = get_free_memory();
    for (;;) {
      const std::uint64_t bytes = std::min(wanted, left) / unit * unit;
      if (bytes == 0 || get_free_memory().compare_exchange_weak(left, left - bytes)) return bytes;
    }
  }

  static constexpr std::uint64_t kLeastBytes =
      64 << 20;  // with the 16 MiB of compute_decoded_limit(), 1 GiB of zeros in a small file would take 64 passes
  static constexpr std::uint64_t kSharedBytes = 512 << 20;
  static constexpr std::uint64_t kFewPasses = 3;

  std::uint64_t size_;
  std::uint64_t slab_bytes_ = 0;  // the size of a slab without shared memory; the last slab may be smaller
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Slab> slab_;
  mutable std::uint64_t unread_ = 0;
};

class StridedBlob final : public Blob {
 public:
  // Requires: the blob has all elements of the dimensions.
  StridedBlob(BlobPtr blob, const Strided& layout, Dimensions dimensions, std::uint64_t size)
      : blob_(std::move(blob)),
        first_(layout.offset),
        item_(layout.item_bytes),
        dimensions_(std::move(dimensions)),
        size_(size) {
    // With these strides, the whole blob is the transposed matrix [columns, rows].
    if (layout.shape.size() == 2 && layout.offset == 0 && layout.swapped == 0 && size_ == blob_->size() &&
        layout.strides == compute_column_major_strides(layout.shape, layout.item_bytes)) {
      matrix_ = StoredAs{.change = StoredAs::Change::transposed, .blob = blob_, .row_bytes = layout.shape[0] * item_};
    }
    if (blob_->seekable()) {
      bands_ = Bands::make(dimensions_, item_);
    } else if (!blob_->map()) {
      slabs_.emplace(*blob_, item_, size_);
    }
  }

  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return !slabs_ || slabs_->is_single(); }
  bool decodable() const override { return blob_->decodable(); }

  // Returns the range of the file that the blob reads. The strides are a part of its encoding.
  std::optional<Stored> stored() const override {
    auto at = blob_->stored();
    if (!at) return at;
    at->encoding += fmt::format(", {}-byte items from {}", item_, first_);
    for (const Dimension& dimension : dimensions_)
      at->encoding += fmt::format(", {} every {}", dimension.count, dimension.stride);
    return at;
  }

  const StoredAs* stored_as() const override { return matrix_ ? &*matrix_ : nullptr; }

  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    std::uint64_t element = offset / item_;
    std::uint64_t position = first_;
    for (std::size_t d = dimensions_.size(); d-- > 0; element /= dimensions_[d].count)
      position = move_position(position, element % dimensions_[d].count, dimensions_[d].stride);
    return blob_->stored_byte(position + offset % item_);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (slabs_) return read_slabs(offset, out);
    if (bands_ && !blob_->map()) return read_bands(offset, out);
    if (out.empty()) return;
    Elements elements(*blob_, blob_->map(), item_);
    std::uint64_t element = offset / item_;
    if (const auto skipped = static_cast<std::size_t>(offset % item_); skipped != 0) {
      out = out.subspan(copy_part(elements, element++, skipped, out));
    }
    if (const std::uint64_t whole = out.size() / item_; whole != 0) {
      copy(elements, element, whole, out.data());
      out = out.subspan(static_cast<std::size_t>(whole * item_));
      element += whole;
    }
    if (!out.empty()) copy_part(elements, element, 0, out);
  }

 private:
  // Returns the position of the matrix with this index.
  std::uint64_t find_matrix_position(std::uint64_t index) const {
    std::uint64_t position = first_;
    for (std::size_t d = dimensions_.size() - 2; d-- > 0;) {
      position = move_position(position, index % dimensions_[d].count, dimensions_[d].stride);
      index /= dimensions_[d].count;
    }
    return position;
  }

  void read_bands(std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint64_t column_bytes = bands_->rows() * item_;
    while (!out.empty()) {
      const std::uint64_t column = offset / column_bytes % bands_->columns();
      const std::uint64_t first = bands_->find_first_column(column);
      const auto band =
          bands_->load_band(*blob_, find_matrix_position(offset / column_bytes / bands_->columns()), first);
      const auto skipped = static_cast<std::size_t>((column - first) * column_bytes + offset % column_bytes);
      const std::size_t count = std::min(out.size(), band.size() - skipped);
      std::copy_n(band.begin() + static_cast<std::ptrdiff_t>(skipped), count, out.begin());
      out = out.subspan(count);
      offset += count;
    }
  }

  void read_slabs(std::uint64_t offset, std::span<std::byte> out) const {
    const auto gather = [&](std::uint64_t begin, std::span<std::byte> slab) {
      std::vector<PlacedBox> boxes;
      visit_boxes(0, first_, begin / item_, slab.size() / item_, slab.data(),
                  [&](PlacedBox box) { boxes.push_back(std::move(box)); });
      gather_from_stream(*blob_, boxes, item_);
    };
    while (!out.empty()) {
      const std::size_t count = slabs_->read(offset, out, gather);
      out = out.subspan(count);
      offset += count;
    }
  }

  // Copies the bytes of one element from `skipped` on, as far as they fit; returns how many.
  std::size_t copy_part(Elements& elements, std::uint64_t element, std::size_t skipped,
                        std::span<std::byte> out) const {
    std::vector<std::byte> whole(item_);
    copy(elements, element, 1, whole.data());
    const std::size_t count = std::min(item_ - skipped, out.size());
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(skipped), count, out.begin());
    return count;
  }

  void copy(Elements& elements, std::uint64_t first, std::uint64_t count, std::byte* to) const {
    visit_boxes(0, first_, first, count, to,
                [&](PlacedBox box) { elements.copy(box.position, std::move(box.dimensions), box.to); });
  }

  // Calls `use` with the smallest number of boxes that hold elements [first, first + count) of dimensions `d` and
  // later, which begin at `position`.
  template <typename Use>
  void visit_boxes(std::size_t d, std::uint64_t position, std::uint64_t first, std::uint64_t count, std::byte* to,
                   const Use& use) const {
    if (d == dimensions_.size()) return use({position, {}, to});
    std::uint64_t inner = 1;
    for (std::size_t i = d + 1; i < dimensions_.size(); ++i) inner *= dimensions_[i].count;
    const std::int64_t stride = dimensions_[d].stride;
    std::uint64_t index = first / inner;
    if (const std::uint64_t passed = first % inner; passed != 0) {
      const std::uint64_t taken = std::min(count, inner - passed);
      visit_boxes(d + 1, move_position(position, index++, stride), passed, taken, to, use);
      to += taken * item_;
      count -= taken;
    }
    if (const std::uint64_t whole = count / inner; whole != 0) {
      Dimensions box(dimensions_.begin() + static_cast<std::ptrdiff_t>(d), dimensions_.end());
      box[0].count = whole;
      use({move_position(position, index, stride), std::move(box), to});
      to += whole * inner * item_;
      index += whole;
      count -= whole * inner;
    }
    if (count != 0) visit_boxes(d + 1, move_position(position, index, stride), 0, count, to, use);
  }

  BlobPtr blob_;
  std::uint64_t first_;
  std::size_t item_;
  Dimensions dimensions_;
  std::uint64_t size_;
  std::optional<StoredAs> matrix_;  // the stored matrix, if this blob is its transpose
  std::optional<Bands> bands_;
  std::optional<Slabs> slabs_;  // used for a blob that can neither be borrowed nor read at any offset
};

[[noreturn]] void refuse(std::string problem) { throw Error(ErrorKind::invalid_file, std::move(problem)); }

std::vector<std::int64_t> compute_strides(const Shape& shape, unsigned item_bytes, bool is_row_major) {
  std::vector<std::int64_t> strides(shape.size());
  std::uint64_t bytes = item_bytes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t d = is_row_major ? shape.size() - 1 - i : i;
    strides[d] = static_cast<std::int64_t>(bytes);
    bytes *= shape[d];
  }
  return strides;
}

// Does what make_strided_blob() does, but keeps the byte order of the numbers.
BlobPtr make_contiguous_blob(BlobPtr blob, const Strided& layout) {
  const auto elements = element_count(layout.shape);
  const auto size = elements ? checked_mul(*elements, layout.item_bytes) : std::nullopt;
  if (!size) refuse(fmt::format("elements of shape {} take more than 2^64 bytes", to_string(layout.shape)));
  if (*size == 0) return make_memory_blob({}, "no elements");
  Dimensions dimensions = merge_dimensions(layout);
  const auto range = find_element_range(layout.offset, dimensions, layout.item_bytes);
  if (!range || range->end > blob->size()) {
    refuse(fmt::format("elements of shape {} with strides ({}) from byte {} on are not in {} bytes",
                       to_string(layout.shape), fmt::join(layout.strides, ", "), layout.offset, blob->size()));
  }
  const bool dense = dimensions.empty() ||
                     (dimensions.size() == 1 && dimensions[0].stride == static_cast<std::int64_t>(layout.item_bytes));
  if (dense && *size == blob->size()) return blob;
  if (const auto raw = dense ? blob->raw_range() : std::nullopt)
    return make_source_blob(raw->source, raw->offset + layout.offset, *size);
  return std::make_shared<StridedBlob>(std::move(blob), layout, std::move(dimensions), *size);
}

}  // namespace

std::vector<std::int64_t> compute_row_major_strides(const Shape& shape, unsigned item_bytes) {
  return compute_strides(shape, item_bytes, true);
}
std::vector<std::int64_t> compute_column_major_strides(const Shape& shape, unsigned item_bytes) {
  return compute_strides(shape, item_bytes, false);
}

BlobPtr make_strided_blob(BlobPtr blob, const Strided& layout) {
  return make_byte_swapped_blob(make_contiguous_blob(std::move(blob), layout), layout.swapped);
}

Tensor transpose_view(Tensor tensor) {
  const std::size_t last = tensor.shape.size() - 1;
  Shape shape = tensor.shape;
  std::swap(shape[last - 1], shape[last]);
  if (const BlockType* blocks = get_block_type(tensor.layout)) {
    const bool columns = get_block_direction(tensor.layout) == BlocksAlong::columns;
    tensor.layout = make_block_layout(*blocks, columns ? BlocksAlong::rows : BlocksAlong::columns);
    tensor.shape = shape;
    return tensor;
  }
  const Part& data = tensor.require("data");
  const unsigned item = info(data.dtype).bits / 8;
  const StoredAs* const stored = find_change(*data.blob, StoredAs::Change::transposed);
  if (shape.size() == 2 && stored != nullptr && stored->row_bytes == shape[1] * item)
    return make_dense(tensor.name, shape, data.dtype, stored->blob);
  std::vector<std::int64_t> strides = compute_row_major_strides(tensor.shape, item);
  std::swap(strides[last - 1], strides[last]);
  return make_dense(tensor.name, shape, data.dtype,
                    make_strided_blob(data.blob, {.shape = shape, .strides = std::move(strides), .item_bytes = item}));
}

}  // namespace poise
