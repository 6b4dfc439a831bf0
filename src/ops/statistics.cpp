// Computes statistics: reads tensors in pieces on all processors, and adds the pieces up in order. A piece has whole
// rows, or a part of a long row.
//
// Outliers depend on the tensor's mean and standard deviation, which are known only at the end. So each piece guesses
// both from its first block, and collects numbers that are far from the guessed mean: fewer than one of a hundred in
// most models. Outliers are counted among the collected numbers. A piece with outliers is read again if it did not
// collect all of them: its guess of the deviation was too large, it has too many far numbers, or its numbers are
// float64. If a tensor can be read only from front to back, the whole tensor is read again.
#include <poise/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "io/meter.hpp"
#include "io/threads.hpp"
#include "numeric/summary_kernels.hpp"
#include "ops/name_patterns.hpp"
#include "ops/ranks.hpp"
#include "ops/shared_bytes.hpp"
#include "ops/tensor_details.hpp"
#include "ops/tensor_elements.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostInPiece = 1 << 18;        // elements
constexpr std::size_t kMostFar = kMostInPiece / 32;  // numbers that a piece collects
constexpr float kFarDeviations = 4;                  // standard deviations of the first block
constexpr float kNearZero = 0.25F;                   // standard deviations
constexpr double kOutlierDeviations = 6;             // standard deviations of the tensor
constexpr double kHistogramDeviations = 4;
constexpr std::uint64_t kSample = 1 << 14;  // elements; the sample of a large tensor has 2/3 to 2 times this number
constexpr std::uint64_t kShortRow = 256;    // elements; shorter rows are summed up together

// Returns the step between the elements of the sample. The step is odd, so that the sample has elements of all columns
// even if the row length is a power of two.
std::uint64_t compute_sample_step(std::uint64_t elements) {
  return elements < 2 * kSample ? 1 : (elements / kSample) | 1;
}

// Holds the sums of neighbouring elements: of whole rows, or of a part of a single row.
struct Piece {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Summary summary = {};
  FarNumbers far = {};
  Moments row = {};                                       // the sums of a single row
  std::optional<TensorStatistics::Channel> largest = {};  // the largest of the whole rows
  std::vector<double> sample = {};                        // a sample of finite numbers
  CellSums cells = {};
};

// Keeps the channel with the larger rms. Ignores a channel without finite numbers, whose rms is NaN.
void keep_larger(std::optional<TensorStatistics::Channel>& largest, TensorStatistics::Channel next) {
  if (std::isnan(next.rms)) return;
  if (!largest || next.rms > largest->rms) largest = next;
}

// Holds a tensor that is being read. The stored values of a sparse tensor count as one row.
struct Work {
  const Tensor& tensor;
  std::size_t index;  // the index among the results
  std::optional<Tensor> stored_values = {};
  std::optional<TensorElements> elements = {};
  std::uint64_t count;                // the number of elements that are read
  std::uint64_t row_length = 1;       // elements of a row
  std::uint64_t step = 1;             // the distance of elements in the sample
  std::optional<CellGrid> grid = {};  // std::nullopt: no map is wanted

  Work(const Tensor& given, std::size_t at) : tensor(given), index(at), count(given.elements()) {
    step = compute_sample_step(count);
    if (given.shape.size() >= 2 && count > 0) row_length = count / given.shape[0];
    if (!is_sparse(given)) return;
    const Part& values = given.require("values");
    count = count_stored_elements(given);
    row_length = std::max<std::uint64_t>(count, 1);
    stored_values = make_dense(given.name, {count}, values.dtype, values.blob);
  }

  const Tensor& numbers() const { return stored_values ? *stored_values : tensor; }

  std::uint64_t find_piece_end(std::uint64_t begin) const {
    if (has_long_rows()) return std::min((begin / row_length + 1) * row_length, begin + kMostInPiece);
    return std::min(count, begin + kMostInPiece / row_length * row_length);
  }
  bool has_long_rows() const { return row_length > kMostInPiece; }
  // Returns true if one thread reads all pieces, because a compressed stream can only be read in order, or because
  // find_largest_sparse_row() needs the whole tensor.
  bool must_read_in_order() const { return stored_values || !elements->is_seekable(); }

  // Returns the number of the tensor's bytes that the progress counts for the elements before this one.
  std::uint64_t count_bytes_before(std::uint64_t element) const {
    if (element == 0 || element == count) return element == 0 ? 0 : tensor.size_bytes();
    return static_cast<std::uint64_t>(static_cast<double>(tensor.size_bytes()) * static_cast<double>(element) /
                                      static_cast<double>(count));
  }
};

// Divides the elements of [begin, end) into blocks that fit the first-level cache. A block is a part of one row, or
// several whole short rows. For each block, calls use_stored(bytes, first) with the stored bytes of mapped f16 or bf16
// elements, or with no bytes for other elements. If use_stored() returns false, reads the block and calls
// use(block, first).
template <typename Number, typename Use, typename UseStored>
void read_blocks(const Work& work, std::uint64_t begin, std::uint64_t end, BlobStream* stream, const Use& use,
                 const UseStored& use_stored) {
  const std::uint64_t row = work.row_length;
  std::vector<Number> numbers(kBlockSize);
  std::vector<std::byte> buffer;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t most = row < kShortRow ? kBlockSize / row * row : row - at % row;
    const auto count = static_cast<std::size_t>(std::min({end - at, most, std::uint64_t{kBlockSize}}));
    const std::uint64_t first = std::exchange(at, at + count);
    if (use_stored(work.elements->find_stored_bytes(first, count), first)) continue;
    const std::span<Number> block = std::span(numbers).first(count);
    work.elements->read(stream, first, block, buffer);
    use(std::span<const Number>(block), first);
  }
}

template <typename Number, typename Use>
void read_blocks(const Work& work, std::uint64_t begin, std::uint64_t end, BlobStream* stream, const Use& use) {
  read_blocks<Number>(work, begin, end, stream, use, [](std::span<const std::byte>, std::uint64_t) { return false; });
}

template <typename Number>
class PieceSums {
 public:
  PieceSums(const Work& work, Piece& piece)
      : work_(work), piece_(piece), smallest_normal_(static_cast<Number>(work.elements->smallest_normal())) {}

  void add(std::span<const Number> block, std::uint64_t first) {
    if (first == piece_.begin) guess_far_numbers(block);
    add_summary(summarize_block(block), first, block.size());
    add_to_sample(first, block.size(), [&](std::size_t i) { return static_cast<double>(block[i]); });
    if (work_.grid) {
      work_.grid->add(
          first, block.size(),
          [&](std::size_t at, std::size_t length) { return sum_squares(block.subspan(at, length)); }, piece_.cells);
    }
    if (has_short_rows()) add_short_rows(block, first / work_.row_length);
  }

  // Adds f16 or bf16 numbers in their stored form. Returns false, without adding them, if the caller must call add()
  // instead.
  bool add_stored_numbers(std::span<const std::byte> stored, std::uint64_t first) {
    const TensorElements& elements = *work_.elements;
    if (stored.empty() || has_short_rows() || first == piece_.begin) return false;
    const auto summary =
        summarize_stored_numbers(elements.dtype(), stored, static_cast<float>(smallest_normal_), piece_.far);
    if (!summary) return false;
    const std::size_t count = stored.size() / TensorElements::kStoredBytes;
    add_summary(*summary, first, count);
    add_to_sample(first, count, [&](std::size_t i) {
      return static_cast<double>(elements.decode(stored.subspan(i * TensorElements::kStoredBytes)));
    });
    if (work_.grid) add_stored_cells(stored, first, count);
    return true;
  }

 private:
  bool has_short_rows() const { return work_.row_length < kShortRow; }

  Summary summarize_block(std::span<const float> block) { return summarize(block, smallest_normal_, piece_.far); }
  Summary summarize_block(std::span<const double> block) { return summarize(block, smallest_normal_); }

  void add_summary(const Summary& summary, std::uint64_t first, std::size_t count) {
    piece_.summary.merge(summary);
    if (has_short_rows()) return;
    piece_.row.merge(summary.moments);
    if (!work_.has_long_rows() && (first + count) % work_.row_length == 0)
      keep_larger(piece_.largest, {first / work_.row_length, std::exchange(piece_.row, {}).find_rms()});
  }

  void add_stored_cells(std::span<const std::byte> stored, std::uint64_t first, std::size_t count) {
    constexpr std::size_t kBytes = TensorElements::kStoredBytes;
    work_.grid->add(
        first, count,
        [&](std::size_t at, std::size_t length) {
          return sum_stored_squares(work_.elements->dtype(), stored.subspan(at * kBytes, length * kBytes));
        },
        piece_.cells);
  }

  void guess_far_numbers(std::span<const float> block) {
    FarNumbers none;
    const auto finite = std::ranges::find_if(block, [](float number) { return std::isfinite(number); });
    if (finite == block.end()) return;
    none.center = *finite;
    const Moments moments = summarize(block, 0, none).moments;
    const auto mean = static_cast<float>(moments.find_mean());
    const auto deviation = static_cast<float>(moments.find_deviation());
    // Sums around 0 are faster, and float64 has enough digits for them if the mean is small.
    const bool is_around_zero = std::abs(mean) < kNearZero * deviation;
    piece_.far = {.center = is_around_zero ? 0 : mean,
                  .reach = kFarDeviations * deviation + (is_around_zero ? std::abs(mean) : 0),
                  .most = kMostFar};
  }
  void guess_far_numbers(std::span<const double>) { piece_.far.is_complete = false; }

  template <typename NumberAt>
  void add_to_sample(std::uint64_t first, std::size_t count, const NumberAt& number_at) {
    const std::uint64_t step = work_.step;
    for (std::uint64_t i = (step - first % step) % step; i < count; i += step) {
      const double number = number_at(static_cast<std::size_t>(i));
      if (std::isfinite(number)) piece_.sample.push_back(number);
    }
  }

  void add_short_rows(std::span<const float> block, std::uint64_t first) {
    const LargestRow largest = find_largest_row(block, static_cast<std::size_t>(work_.row_length));
    keep_larger(piece_.largest, {first + largest.row, largest.rms});
  }
  void add_short_rows(std::span<const double> block, std::uint64_t first) {
    const auto length = static_cast<std::size_t>(work_.row_length);
    for (std::size_t row = 0; row < block.size() / length; ++row)
      keep_larger(piece_.largest, {first + row, summarize(block.subspan(row * length, length), 0).moments.find_rms()});
  }

  const Work& work_;
  Piece& piece_;
  Number smallest_normal_;
};

template <typename Number>
void read_piece(const Work& work, Piece& piece, BlobStream* stream) {
  if (work.grid) piece.cells = work.grid->make_sums(piece.begin, piece.end);
  PieceSums<Number> sums(work, piece);
  read_blocks<Number>(
      work, piece.begin, piece.end, stream,
      [&](std::span<const Number> block, std::uint64_t first) { sums.add(block, first); },
      [&](std::span<const std::byte> stored, std::uint64_t first) { return sums.add_stored_numbers(stored, first); });
}

void read_piece(const Work& work, Piece& piece, BlobStream* stream) {
  work.elements->needs_float64() ? read_piece<double>(work, piece, stream) : read_piece<float>(work, piece, stream);
}

// Returns the row of a sparse tensor with the largest rms.
std::optional<TensorStatistics::Channel> find_largest_sparse_row(const Work& work) {
  const Tensor& tensor = work.tensor;
  const std::vector<SparseEntry> entries = read_sparse_entries(tensor);
  std::vector<double> values;
  values.reserve(entries.size());
  const auto stream = work.elements->stream();
  const auto collect = [&](const auto& block, std::uint64_t) {
    values.insert(values.end(), block.begin(), block.end());
  };
  work.elements->needs_float64() ? read_blocks<double>(work, 0, work.count, stream.get(), collect)
                                 : read_blocks<float>(work, 0, work.count, stream.get(), collect);
  if (tensor.shape.empty() || tensor.elements() == 0) return std::nullopt;
  const std::uint64_t length = tensor.elements() / tensor.shape[0];
  std::optional<TensorStatistics::Channel> largest;
  std::vector<double> row;
  std::uint64_t first_unseen = 0;  // the row after the last one with stored elements
  for (std::size_t i = 0; i < entries.size(); ++i) {
    row.push_back(values[static_cast<std::size_t>(entries[i].place)]);
    const std::uint64_t index = entries[i].cell / length;
    if (i + 1 < entries.size() && entries[i + 1].cell / length == index) continue;
    if (index > first_unseen) keep_larger(largest, {first_unseen, 0});  // a row of zeros
    first_unseen = index + 1;
    Moments moments = {.count = length - row.size()};
    moments.merge(summarize(row, 0).moments);
    keep_larger(largest, {index, moments.find_rms()});
    row.clear();
  }
  if (first_unseen < tensor.shape[0]) keep_larger(largest, {first_unseen, 0});
  return largest;
}

// Holds the statistics of a tensor so far.
struct Sums {
  std::shared_ptr<Work> work;
  Summary summary;
  Moments row;
  std::optional<TensorStatistics::Channel> largest;
  std::vector<double> sample;
  std::vector<SquareSums> cells;
  std::vector<Piece> pieces;  // the pieces, without their samples and cells

  void add(Piece piece) {
    summary.merge(piece.summary);
    sample.insert(sample.end(), piece.sample.begin(), piece.sample.end());
    piece.sample = {};
    if (work->grid) work->grid->merge(piece.cells, cells);
    piece.cells = {};
    if (work->has_long_rows()) {
      row.merge(piece.row);
      if (piece.end % work->row_length == 0)
        keep_larger(largest, {piece.begin / work->row_length, std::exchange(row, {}).find_rms()});
    } else if (piece.largest) {
      keep_larger(largest, *piece.largest);
    }
    pieces.push_back(std::move(piece));
  }
};

// Sets the range of a histogram, and counts the numbers of the sample in its bins. Then counts `zeros` zeros: a sample
// of those that a sparse tensor does not store.
template <typename Counts>
void count_sample(const TensorStatistics& result, const std::vector<double>& sample, std::uint64_t zeros,
                  Counts& histogram) {
  histogram.low = std::max(result.min, result.mean - kHistogramDeviations * result.deviation);
  histogram.high = std::min(result.max, result.mean + kHistogramDeviations * result.deviation);
  const double half = histogram.high / 2 - histogram.low / 2;  // computed from halves, because high - low may overflow
  const auto parts = static_cast<double>(histogram.counts.size());
  const auto count = [&](double number, std::uint64_t times) {
    const double place = half > 0 ? (number / 2 - histogram.low / 2) / half * parts : 0;
    histogram.counts[static_cast<std::size_t>(std::clamp(place, 0.0, parts - 1))] += times;
  };
  for (const double number : sample) count(number, 1);
  if (zeros > 0) count(0, zeros);
}

// Describes a part of a tensor whose outliers another pass counts.
struct Recount {
  std::shared_ptr<Work> work;
  std::uint64_t begin;
  std::uint64_t end;
  double low;  // the smallest number that is not an outlier
  double high;
};

// Counts outliers. Adds to `recounts` the parts of the tensor that another pass has to count.
void count_outliers(const Sums& sums, TensorStatistics& result, std::vector<Recount>& recounts) {
  const double low = result.mean - kOutlierDeviations * result.deviation;
  const double high = result.mean + kOutlierDeviations * result.deviation;
  bool is_counted_again = false;
  for (const Piece& piece : sums.pieces) {
    if (!(piece.summary.min < low || piece.summary.max > high)) continue;
    if (piece.far.covers(low, high)) {
      result.outliers += count_outside(piece.far.numbers, low, high);
    } else if (sums.work->elements->is_seekable()) {
      recounts.push_back({sums.work, piece.begin, piece.end, low, high});
    } else {
      is_counted_again = true;
    }
  }
  if (is_counted_again) {
    result.outliers = 0;
    recounts.push_back({sums.work, 0, sums.work->count, low, high});
  }
  if (0 < low || 0 > high)
    result.outliers += result.elements - sums.work->count;  // all zeros of a sparse tensor are outliers
}

// Completes the statistics of a tensor; `details` may be null.
void complete_statistics(Sums& sums, TensorStatistics& result, TensorDetails* details, std::vector<Recount>& recounts) {
  if (details != nullptr && sums.work->grid) details->map = sums.work->grid->make_map(sums.cells);
  const std::uint64_t unstored = result.elements - sums.work->count;
  if (unstored > 0) sums.summary.merge({.moments = {.count = unstored}, .min = 0, .max = 0, .zeros = unstored});
  const Summary& summary = sums.summary;
  result.zeros = summary.zeros;
  result.subnormals = summary.subnormals;
  result.nans = summary.nans;
  result.infinities = summary.infinities;
  if (!sums.work->tensor.shape.empty()) result.largest_channel = sums.largest;
  if (summary.moments.count == 0) return;
  result.min = summary.min;
  result.max = summary.max;
  const bool is_constant = result.min == result.max;
  result.mean = is_constant ? result.min : summary.moments.find_mean();
  result.deviation = is_constant ? 0 : summary.moments.find_deviation();
  result.rms = is_constant ? std::abs(result.min) : summary.moments.find_rms();
  const std::uint64_t unstored_sample = unstored / sums.work->step;
  count_sample(result, sums.sample, unstored_sample, result.histogram.emplace());
  if (details != nullptr) {
    details->histogram.counts.resize(kFineBins);
    count_sample(result, sums.sample, unstored_sample, details->histogram);
  }
  if (!is_constant) count_outliers(sums, result, recounts);
}

// Returns why a tensor cannot be read as numbers; an empty text if it can.
std::string find_problem(const Tensor& tensor) {
  for (const Part& part : tensor.parts) {
    if (part.blob->decodable()) continue;
    const auto stored = part.blob->stored();
    return fmt::format("{}: the encoding {} is unknown", part.role, stored ? stored->encoding : "of its bytes");
  }
  const auto is_unknown = [](const Part& part) { return part.dtype == DType::unknown; };
  const bool has_numbers = is_sparse(tensor) ? std::ranges::none_of(tensor.parts, is_unknown) &&
                                                   TensorElements::has_numbers(Work(tensor, 0).numbers())
                                             : TensorElements::has_numbers(tensor);
  if (has_numbers) return {};
  return fmt::format("it is stored as {}, which Poise cannot decode to real numbers", describe_storage(tensor));
}

class Statistics {
 public:
  using FindSide = std::function<std::size_t(const Tensor&)>;

  // Makes details only if `find_side` is not empty. `ranks` is null for a single rank.
  Statistics(const std::vector<const Tensor*>& tensors, const Progress& progress, Communicator* ranks,
             FindSide find_side = {})
      : ranks_(ranks), find_side_(std::move(find_side)) {
    for (const Tensor* tensor : tensors) {
      result_.tensors.push_back({.name = tensor->name,
                                 .shape = tensor->shape,
                                 .type = describe_stored_type(*tensor),
                                 .elements = tensor->elements(),
                                 .problem = find_problem(*tensor)});
      if (!result_.tensors.back().problem.empty()) continue;
      waiting_.push_back({tensor, result_.tensors.size() - 1});
    }
    if (ranks != nullptr) keep_own_tensors(*ranks);
    std::uint64_t bytes = 0;
    for (const Waiting& waiting : waiting_) bytes = saturating_add(bytes, waiting.tensor->size_bytes());
    meter_.emplace(progress, bytes);
    if (find_side_) details_.resize(tensors.size());
  }

  std::vector<TensorDetails> release_details() { return std::move(details_); }

  ModelStatistics compute() {
    process_in_order<Item>([this](Item& item) { return begin_item(item); }, [this](Item& item) { read_item(item); },
                           [this](Item& item) { add_item(item); });
    std::size_t next = 0;
    struct Count {
      const Recount* recount;
      std::uint64_t outliers;
    };
    const auto begin = [&](Count& count) {
      if (next == recounts_.size()) return false;
      count = {&recounts_[next++], 0};
      return true;
    };
    process_in_order<Count>(
        begin, [](Count& count) { count.outliers = recount_outliers(*count.recount); },
        [&](Count& count) {
          result_.tensors[count.recount->work->index].outliers += count.outliers;
          meter_->advance(0, count.recount->work->tensor.name);
        });
    if (ranks_ != nullptr) exchange_results(*ranks_);
    return std::move(result_);
  }

 private:
  // Removes the tensors that other ranks read.
  void keep_own_tensors(const Communicator& ranks) {
    std::vector<std::uint64_t> sizes;
    for (const Waiting& waiting : waiting_) sizes.push_back(waiting.tensor->size_bytes());
    const std::vector<std::size_t> dealt = assign_to_ranks(sizes, ranks.size());
    std::vector<Waiting> own;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (dealt[i] == ranks.rank()) own.push_back(waiting_[i]);
    }
    waiting_ = std::move(own);
  }

  void exchange_results(Communicator& ranks) {
    std::string own;
    for (const Waiting& waiting : waiting_) {
      append_number(own, waiting.index);
      append_statistics(own, result_.tensors[waiting.index]);
    }
    for (const std::string& message : ranks.gather(own)) {
      for (std::string_view left = message; !left.empty();)
        read_statistics(left, result_.tensors.at(read_number(left)));
    }
  }

  struct Item {
    std::shared_ptr<Work> work;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<Piece> pieces;
    std::optional<TensorStatistics::Channel> largest_sparse;
  };

  bool begin_item(Item& item) {
    if (!work_) {
      if (next_ == waiting_.size()) return false;
      const auto& [tensor, index] = waiting_[next_++];
      work_ = std::make_shared<Work>(*tensor, index);
      work_->elements.emplace(work_->numbers());
      if (find_side_ && !work_->stored_values) {
        if (const CellGrid grid(tensor->shape, find_side_(*tensor)); !grid.empty()) work_->grid = grid;
      }
      at_ = 0;
    }
    item.work = work_;
    item.begin = at_;
    item.end = at_ = work_->must_read_in_order() ? work_->count : work_->find_piece_end(at_);
    item.pieces.clear();
    item.largest_sparse.reset();
    if (at_ == work_->count) work_.reset();
    return true;
  }

  void read_item(Item& item) {
    const Work& work = *item.work;
    if (work.stored_values) item.largest_sparse = find_largest_sparse_row(work);
    const auto stream = work.elements->stream();
    for (std::uint64_t at = item.begin; at < item.end;) {
      Piece& piece = item.pieces.emplace_back();
      piece.begin = at;
      piece.end = at = work.find_piece_end(at);
      read_piece(work, piece, stream.get());
      meter_->advance(work.count_bytes_before(piece.end) - work.count_bytes_before(piece.begin), work.tensor.name);
    }
  }

  void add_item(Item& item) {
    if (!sums_) sums_.emplace().work = item.work;
    for (Piece& piece : item.pieces) sums_->add(std::move(piece));
    const Work& work = *item.work;
    if (work.stored_values) sums_->largest = item.largest_sparse;
    if (item.end == work.count) {
      complete_statistics(*sums_, result_.tensors[work.index], details_.empty() ? nullptr : &details_[work.index],
                          recounts_);
      sums_.reset();
    }
    item.work.reset();
  }

  static std::uint64_t recount_outliers(const Recount& recount) {
    const Work& work = *recount.work;
    const auto stream = work.elements->stream();
    std::uint64_t outliers = 0;
    const auto count = [&](const auto& block, std::uint64_t) {
      outliers += count_outside(block, recount.low, recount.high);
    };
    work.elements->needs_float64() ? read_blocks<double>(work, recount.begin, recount.end, stream.get(), count)
                                   : read_blocks<float>(work, recount.begin, recount.end, stream.get(), count);
    return outliers;
  }

  struct Waiting {
    const Tensor* tensor;
    std::size_t index;
  };

  Communicator* ranks_;
  FindSide find_side_;
  ModelStatistics result_;
  std::vector<TensorDetails> details_;
  std::vector<Waiting> waiting_;
  std::optional<Meter> meter_;
  // Only begin_item() uses these members: the index of the next tensor in waiting_, the work of the current tensor, and
  // the beginning of its next item.
  std::size_t next_ = 0;
  std::shared_ptr<Work> work_;
  std::uint64_t at_ = 0;
  // Only add_item() uses this member: the sums of the tensor whose items it adds.
  std::optional<Sums> sums_;
  std::vector<Recount> recounts_;
};

}  // namespace

ModelStatistics compute_statistics(const Model& model, const StatisticsOptions& options) {
  const std::vector<const Tensor*> tensors = select_tensors(model, options.only, options.skip);
  return run_naming_parts({&model}, [&] { return Statistics(tensors, options.progress, nullptr).compute(); });
}

ModelStatistics compute_statistics(const Model& model, const StatisticsOptions& options, Communicator& ranks) {
  const std::vector<const Tensor*> tensors = select_tensors(model, options.only, options.skip);
  return run_naming_parts({&model}, [&] { return Statistics(tensors, options.progress, &ranks).compute(); });
}

DetailedStatistics compute_details(const Model& model, const std::vector<const Tensor*>& tensors,
                                   const std::function<std::size_t(const Tensor&)>& find_side,
                                   const Progress& progress) {
  return run_naming_parts({&model}, [&] {
    Statistics statistics(tensors, progress, nullptr, find_side);
    DetailedStatistics result{statistics.compute().tensors, {}};
    result.details = statistics.release_details();
    return result;
  });
}

}  // namespace poise
