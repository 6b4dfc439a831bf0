// Multiplies by matrices. A product is divided into units, which threads share.
#include <algorithm>
#include <optional>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "kernels/aligned_vector.hpp"
#include "runtime/matrix.hpp"
#include "runtime/parallel.hpp"

namespace poise {
namespace {

// Holds x in the form for kernels. Its elements are in the order of the stored columns.
struct Input {
  std::span<const std::uint32_t> order;  // empty: the order of columns is that of x
  KernelInput x;

  bool suits(const Matrix& matrix) const {
    return x.suits(matrix.stored()) && std::ranges::equal(order, matrix.column_order());
  }
};

Input make_input(const Matrix& matrix, const float* x, std::size_t tokens, Precision precision) {
  const std::span<const std::uint32_t> order = matrix.column_order();
  Input input = {order, KernelInput(matrix.stored(), tokens, precision)};
  std::vector<float> ordered(tokens * order.size());
  const auto convert_tokens = [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last && !order.empty(); ++t) {
      const float* const from = x + t * order.size();
      std::ranges::transform(order, ordered.begin() + static_cast<std::ptrdiff_t>(t * order.size()),
                             [&](std::uint32_t column) { return from[column]; });
    }
    input.x.convert(order.empty() ? x : ordered.data(), first, last);
  };
  constexpr std::size_t kGroup = KernelInput::kTogether;
  if (tokens == 1) {
    convert_tokens(0, 1);
  } else {
    tbb::parallel_for(std::size_t{0}, input.x.groups(),
                      [&](std::size_t g) { convert_tokens(g * kGroup, std::min(tokens, (g + 1) * kGroup)); });
  }
  return input;
}

// Computes the products of several matrices with one x. A unit is a range of outputs, or of rows if is_summed().
class Work {
 public:
  Work(std::span<const Product> products, const float* x, std::size_t tokens, Precision precision)
      : products_(products), x_(x), tokens_(tokens), precision_(precision) {
    for (const Product& product : products) outputs_ += product.matrix->outputs();
    for (const Product& product : products) {
      units_ += count_units(*product.matrix);
      summed_ += count_sums(*product.matrix);
      input_of_.push_back(product.matrix->orientation() == Orientation::out_in ? find_or_make_input(*product.matrix)
                                                                               : 0);
    }
  }
  // Multiplies x that already has the form for kernels. Requires: x suits the product's matrix, whose orientation is
  // out_in.
  Work(const Product& product, Input input, Precision precision)
      : products_(&product, 1), tokens_(input.x.tokens()), precision_(precision), outputs_(product.matrix->outputs()) {
    units_ = count_units(*product.matrix);
    inputs_.push_back(std::move(input));
    input_of_.push_back(0);
  }

  void run() {
    // Each thread reuses its memory. While a thread waits it may run another product, which gets new memory.
    thread_local AlignedFloats of_thread;
    if (summed_ > 0) sums_ = std::move(of_thread);
    begin();
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, units_, count_units_per_task()),
                      [&](const auto& range) { multiply_units(range.begin(), range.end()); });
    finish();
    if (summed_ > 0) of_thread = std::move(sums_);
  }

  // These functions do what run() does, in steps: begin(), all units in any order, finish().
  std::size_t units() const { return units_; }
  // Returns the number of units in a task. A task with fewer would cost more to schedule than to run.
  std::size_t count_units_per_task() const {
    constexpr std::size_t kProductsPerTask = 65536;
    const Matrix& first = *products_.front().matrix;
    const std::size_t unit_products =
        (is_summed(first) ? first.outputs() : first.inputs()) * tokens_ * choose_unit_length(first);
    return std::max<std::size_t>(1, kProductsPerTask / std::max<std::size_t>(1, unit_products));
  }
  void begin() {
    if (sums_.size() < summed_) sums_.resize(summed_);
  }
  void multiply_units(std::size_t begin, std::size_t end) {
    float* sums = sums_.data();
    for (const Product& product : products_) {
      const std::size_t unit = choose_unit_length(*product.matrix);
      const std::size_t units = count_units(*product.matrix);
      if (begin < std::min(units, end))
        multiply_part(product, begin * unit, std::min(get_length(*product.matrix), std::min(units, end) * unit), sums);
      if (end <= units) return;
      begin -= std::min(begin, units);
      end -= units;
      sums += count_sums(*product.matrix);
    }
  }
  void finish() const {
    if (summed_ > 0) add_partial_sums();
    for (const Product& product : products_) {
      if (product.matrix->paired_rows() != 0) reorder_in_halves(product);
    }
  }

 private:
  // Returns true for a matrix [in, out] with one token: ranges of rows are multiplied separately, and then their sums
  // are added.
  bool is_summed(const Matrix& matrix) const { return tokens_ == 1 && matrix.orientation() == Orientation::in_out; }
  std::size_t choose_unit_length(const Matrix& matrix) const {
    if (is_summed(matrix)) return kRowsAdded;
    if (matrix.orientation() == Orientation::in_out) return kColumnsAtOnce;
    const RowsAtOnce rows = choose_rows_at_once(matrix.stored(), tokens_, precision_);
    std::size_t unit = rows.least;
    while (2 * unit <= rows.most && 2 * unit * kUnitsOfThread * threads_ <= outputs_) unit *= 2;
    return unit;
  }
  std::size_t get_length(const Matrix& matrix) const { return is_summed(matrix) ? matrix.inputs() : matrix.outputs(); }
  std::size_t count_units(const Matrix& matrix) const {
    return (get_length(matrix) + choose_unit_length(matrix) - 1) / choose_unit_length(matrix);
  }
  // Returns how many partial sums a matrix has: [units, outputs].
  std::size_t count_sums(const Matrix& matrix) const {
    return is_summed(matrix) ? count_units(matrix) * matrix.outputs() : 0;
  }

  // Returns the index of the input with the form for the matrix; makes the input if it is missing.
  std::size_t find_or_make_input(const Matrix& matrix) {
    const auto found = std::ranges::find_if(inputs_, [&](const Input& input) { return input.suits(matrix); });
    if (found != inputs_.end()) return static_cast<std::size_t>(found - inputs_.begin());
    inputs_.push_back(make_input(matrix, x_, tokens_, precision_));
    return inputs_.size() - 1;
  }

  // Computes whole units: [first, last) are outputs, or rows if is_summed().
  void multiply_part(const Product& product, std::size_t first, std::size_t last, float* sums) const {
    const Matrix& matrix = *product.matrix;
    if (is_summed(matrix)) {
      for (std::size_t r = first; r < last; r += kRowsAdded) {
        float* const to = sums + r / kRowsAdded * matrix.outputs();
        std::fill_n(to, matrix.outputs(), 0.0F);
        add_rows(matrix.stored(), r, std::min(last, r + kRowsAdded), x_, to);
      }
      return;
    }
    if (matrix.orientation() == Orientation::in_out)
      return multiply_columns(matrix.stored(), matrix.rows(), first, last, x_, tokens_, product.y);
    const std::size_t input = input_of_[static_cast<std::size_t>(&product - products_.data())];
    multiply_rows(matrix.stored(), first, last, inputs_[input].x, product.y + first, matrix.rows());
  }

  void add_partial_sums() const {
    const float* sums = sums_.data();
    for (const Product& product : products_) {
      if (!is_summed(*product.matrix)) continue;
      const std::size_t outputs = product.matrix->outputs();
      std::copy_n(sums, outputs, product.y);
      for (std::size_t unit = 1; unit < count_units(*product.matrix); ++unit) {
        for (std::size_t i = 0; i < outputs; ++i) product.y[i] += sums[unit * outputs + i];
      }
      sums += count_sums(*product.matrix);
    }
  }

  // Reorders outputs from the order of stored rows (in pairs) to the order of the matrix (in halves).
  void reorder_in_halves(const Product& product) const {
    const std::size_t outputs = product.matrix->outputs();
    const std::size_t head = product.matrix->paired_rows();
    run_in_parallel(tokens_ * outputs / head, kHeadsAtOnce, [&](std::size_t first, std::size_t last) {
      std::vector<float> pairs(head);
      for (std::size_t i = first; i < last; ++i) {
        float* const y = product.y + i * head;
        std::copy_n(y, head, pairs.data());
        for (std::size_t j = 0; j < head / 2; ++j) {
          y[j] = pairs[2 * j];
          y[head / 2 + j] = pairs[2 * j + 1];
        }
      }
    });
  }

  static constexpr std::size_t kHeadsAtOnce = 256;
  static constexpr std::size_t kUnitsOfThread = 4;  // several, so that all threads end at about the same time

  std::span<const Product> products_;
  const float* x_ = nullptr;
  std::size_t tokens_;
  Precision precision_;
  std::size_t threads_ = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  std::size_t outputs_ = 0;  // the outputs of all matrices together
  std::size_t units_ = 0;
  std::size_t summed_ = 0;  // partial sums of all matrices
  AlignedFloats sums_;
  std::vector<Input> inputs_;          // one, unless matrices have different storage or orders of columns
  std::vector<std::size_t> input_of_;  // the index of each product's input
};

// Multiplies a single token together with a copy of itself, since a token alone is summed in another order.
void multiply_with_copy(std::span<const Product> products, const float* x, Precision precision) {
  const std::size_t inputs = products.front().matrix->inputs();
  std::vector<float> rows(x, x + inputs);
  rows.insert(rows.end(), x, x + inputs);
  std::vector<std::vector<float>> sums;
  std::vector<Product> doubled;
  for (const Product& product : products)
    doubled.push_back({product.matrix, sums.emplace_back(2 * product.matrix->outputs()).data()});
  Work(doubled, rows.data(), 2, precision).run();
  for (std::size_t i = 0; i < products.size(); ++i)
    std::copy_n(sums[i].data(), products[i].matrix->outputs(), products[i].y);
}

// Multiplies tokens so that each gets the bits that it gets alone. Unpacks rows once for each kFewTokens tokens. A part
// of a matrix [in, out] stays in the processor's cache until all tokens have used it.
void multiply_apart(std::span<const Product> products, const float* x, std::size_t tokens) {
  const bool is_summed = std::ranges::any_of(
      products, [](const Product& product) { return product.matrix->orientation() == Orientation::in_out; });
  if (!is_summed) {
    std::vector<Product> some(products.begin(), products.end());
    for (std::size_t t = 0; t < tokens; t += KernelInput::kFewTokens) {
      const std::size_t count = std::min(tokens - t, KernelInput::kFewTokens);
      Work(some, x + t * products.front().matrix->inputs(), count, Precision::apart).run();
      for (Product& product : some) product.y += count * product.matrix->outputs();
    }
    return;
  }
  std::vector<std::vector<Product>> of_token(tokens, {products.begin(), products.end()});
  std::vector<Work> works;
  works.reserve(tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (Product& product : of_token[t]) product.y += t * product.matrix->outputs();
    works.emplace_back(of_token[t], x + t * products.front().matrix->inputs(), 1, Precision::fast).begin();
  }
  const std::size_t grain = works.front().count_units_per_task();
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, works.front().units(), grain), [&](const auto& range) {
    for (std::size_t unit = range.begin(); unit < range.end(); unit += grain) {
      for (Work& work : works) work.multiply_units(unit, std::min(unit + grain, range.end()));
    }
  });
  for (const Work& work : works) work.finish();
}

// Returns true for a matrix without inputs or outputs: the empty share of a rank.
bool is_empty(const Matrix& matrix) { return matrix.inputs() == 0 || matrix.outputs() == 0; }

// Returns true if there are many tokens, not few (KernelInput::is_few()), and multiply_rows() alone computes the
// product: no rows or columns are reordered.
bool has_plain_rows(const Matrix& matrix, std::size_t tokens, Precision precision) {
  return !is_empty(matrix) && matrix.orientation() == Orientation::out_in && matrix.paired_rows() == 0 &&
         matrix.column_order().empty() && precision != Precision::apart &&
         !KernelInput::is_few(matrix.stored(), tokens, precision);
}

}  // namespace

void multiply(std::span<const Product> products, const float* x, std::size_t tokens, const ProductOptions& options) {
  const Precision precision = options.precision;
  if (options.observer != nullptr) options.observer->observe(products, x, tokens);
  if (std::ranges::any_of(products, [](const Product& product) { return is_empty(*product.matrix); })) {
    std::vector<Product> others;
    for (const Product& product : products) {
      if (!is_empty(*product.matrix)) {
        others.push_back(product);
      } else {
        std::fill_n(product.y, tokens * product.matrix->outputs(), 0.0F);
      }
    }
    if (!others.empty()) multiply(others, x, tokens, precision);
    return;
  }
  if (precision == Precision::apart) return multiply_apart(products, x, tokens);
  if (tokens == 1 && precision == Precision::exact) return multiply_with_copy(products, x, precision);
  Work(products, x, tokens, precision).run();
}

void multiply(const Matrix& matrix, const float* x, std::size_t tokens, float* y, const ProductOptions& options) {
  const Product product = {&matrix, y};
  multiply(std::span(&product, 1), x, tokens, options);
}

bool multiply_gated(const GatedProduct& product, const float* x, std::size_t tokens, float* y,
                    const ProductOptions& options) {
  if (options.observer != nullptr) return false;
  const Precision precision = options.precision;
  const Matrix& gate = *product.gate.matrix;
  const Matrix& up = *product.up.matrix;
  const Matrix& down = *product.down;
  if (!has_plain_rows(gate, tokens, precision) || !has_plain_rows(up, tokens, precision) ||
      !has_plain_rows(down, tokens, precision))
    return false;
  const Input of_gate = make_input(gate, x, tokens, precision);
  const std::optional<Input> of_up =
      of_gate.suits(up) ? std::nullopt : std::optional(make_input(up, x, tokens, precision));
  KernelInput of_down(down.stored(), tokens, precision);
  const std::size_t block = of_down.block_columns();
  const std::size_t stride = find_tile_row_stride(block);
  const std::size_t size = 2 * tokens * stride;  // the numbers of a block, of gate and of up
  // Computes the outputs [first, last) of gate and up, from which `finish` makes these columns of down's x. `numbers`
  // begins at the first column of their block.
  const auto multiply_part = [&](std::size_t first, std::size_t last, float* numbers) {
    float* const to = numbers + first % block;
    multiply_rows(gate.stored(), product.gate.first + first, product.gate.first + last, of_gate.x, to, stride);
    multiply_rows(up.stored(), product.up.first + first, product.up.first + last, (of_up ? *of_up : of_gate).x,
                  to + size / 2, stride);
  };
  const auto finish = [&](std::size_t b, const IndexRange& some, float* numbers) {
    const std::size_t columns = std::min(block, down.inputs() - b * block);
    for (std::size_t t = some.first; t < some.last; ++t)
      product.combine(numbers + t * stride, numbers + size / 2 + t * stride, columns);
    of_down.convert({numbers, stride, some, {b, b + 1}});
  };

  // Each thread gets the same number of blocks; then all threads share each of the remaining blocks.
  const auto threads = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  const std::size_t alone = of_down.blocks() / threads * threads;
  tbb::parallel_for(std::size_t{0}, alone, [&](std::size_t b) {
    thread_local AlignedFloats numbers;
    if (numbers.size() < size) numbers.resize(size);
    multiply_part(b * block, std::min((b + 1) * block, down.inputs()), numbers.data());
    finish(b, {0, tokens}, numbers.data());
  });
  const std::size_t shared = of_down.blocks() - alone;
  std::vector<float, UninitializedAllocator<float>> memory(shared * size);
  const auto get_numbers = [&](std::size_t b) { return memory.data() + (b - alone) * size; };
  const std::size_t unit = std::clamp(block * shared / (4 * threads) / kTileRows * kTileRows, kTileRows, block);
  const std::size_t units_of_block = (block + unit - 1) / unit;
  tbb::parallel_for(std::size_t{0}, shared * units_of_block, [&](std::size_t i) {
    const std::size_t b = alone + i / units_of_block;
    const std::size_t first = b * block + i % units_of_block * unit;
    const std::size_t last = std::min({first + unit, (b + 1) * block, down.inputs()});
    if (first < last) multiply_part(first, last, get_numbers(b));
  });
  constexpr std::size_t kGroup = KernelInput::kTogether;
  tbb::parallel_for(std::size_t{0}, shared * of_down.groups(), [&](std::size_t i) {
    const std::size_t b = alone + i / of_down.groups();
    const std::size_t first = i % of_down.groups() * kGroup;
    finish(b, {first, std::min(first + kGroup, tokens)}, get_numbers(b));
  });
  Work({&down, y}, {{}, std::move(of_down)}, precision).run();
  return true;
}

}  // namespace poise
