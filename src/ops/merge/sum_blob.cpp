// Computes sums of tensors, each multiplied by a share. If shares follow from inner products, a pass over the inputs
// comes before the first number.
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/threads.hpp"
#include "ops/merge/methods.hpp"

namespace poise {
namespace {

// Holds shares of the inputs: one for all elements, or for each row.
struct Shares {
  std::vector<float> numbers;  // [rows, inputs]
  std::uint64_t row_elements;  // the number of elements for which a share counts

  const float* get_row(std::uint64_t row, std::size_t count) const {
    return numbers.data() + static_cast<std::size_t>(row) * count;
  }
};

// Adds up products in 8 sums, which the compiler keeps in vector registers.
double compute_inner_product(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums = {};
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
  }
  for (; i < a.size(); ++i) sums[i % kSums] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// `numbers` has a row for each input.
InnerProducts compute_inner_products(std::span<const float> numbers, std::size_t inputs) {
  const std::size_t elements = numbers.size() / inputs;
  InnerProducts products(inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      products.at(i, j) =
          compute_inner_product(numbers.subspan(i * elements, elements), numbers.subspan(j * elements, elements));
    }
  }
  return products;
}

// Sets the numbers of all inputs to 0 for each element that is not finite in one of them.
void leave_out_infinite_elements(std::span<float> numbers, std::size_t inputs) {
  const std::size_t elements = numbers.size() / inputs;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers[i])) continue;
    for (std::size_t k = i % elements; k < numbers.size(); k += elements) numbers[k] = 0;
  }
}

class SumBlob final : public FloatBlob {
 public:
  SumBlob(const MergeMethod& method, MergeInputs inputs, ParameterValues values)
      : FloatBlob(inputs.elements()),
        inputs_(std::move(inputs)),
        method_(method),
        values_(std::move(values)),
        products_(method.products == nullptr ? Products::none : method.products(values_)) {
    if (products_ == Products::none) fixed_ = std::make_shared<const Shares>(compute_shares(nullptr));
  }

  bool seekable() const override { return inputs_.seekable(); }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    const std::shared_ptr<const Shares> shares =
        fixed_ ? fixed_ : kept_.get([this] { return std::make_shared<const Shares>(compute_shares_from_products()); });
    std::array<float, kBlockSize> base;
    std::array<float, kBlockSize> numbers;
    const auto base_numbers = std::span(base).first(inputs_.has_base() ? out.size() : 0);
    const auto input = std::span(numbers).first(out.size());
    if (inputs_.has_base()) {
      inputs_.read_base(first, base_numbers);
      std::ranges::copy(base_numbers, out.begin());
    } else {
      std::ranges::fill(out, 0.0F);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_.read(i, first, base_numbers, input);
      add_input(*shares, i, first, input, out);
    }
  }
  void drop_caches() const override { kept_.release(); }

 private:
  void add_input(const Shares& shares, std::size_t i, std::uint64_t first, std::span<const float> input,
                 std::span<float> out) const {
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t element = first + done;
      const std::uint64_t left = shares.row_elements - element % shares.row_elements;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size() - done));
      const float share = shares.get_row(element / shares.row_elements, inputs_.size())[i];
      float* const to = out.data() + done;
      const float* const from = input.data() + done;
      for (std::size_t k = 0; k < count; ++k) to[k] += share * from[k];
      done += count;
    }
  }

  Shares compute_shares(const InnerProducts* products) const {
    const std::vector<double> shares = method_.shares(values_, products);
    Shares made{{}, inputs_.elements()};
    for (const double share : shares) made.numbers.push_back(static_cast<float>(share));
    return made;
  }

  // Reads all inputs for their inner products, and computes the shares from these.
  Shares compute_shares_from_products() const {
    const bool by_rows = products_ == Products::by_rows;
    const std::uint64_t unit = by_rows ? inputs_.row_elements() : MergeInputs::kChunk;
    std::vector<InnerProducts> units(static_cast<std::size_t>((inputs_.elements() + unit - 1) / unit),
                                     InnerProducts(inputs_.size()));
    add_products(units, unit);
    if (by_rows) {
      Shares made{{}, unit};
      for (const InnerProducts& row : units) {
        for (const double share : method_.shares(values_, &row)) made.numbers.push_back(static_cast<float>(share));
      }
      return made;
    }
    // Adds in order, so that the sum does not depend on the threads.
    InnerProducts all(inputs_.size());
    for (const InnerProducts& part : units) all.add(part);
    return compute_shares(&all);
  }

  // Computes the inner products of each run of `unit` elements: units[i] is for run i. Elements that are not finite in
  // one of the inputs do not count; the sum is not finite there.
  void add_products(std::vector<InnerProducts>& units, std::uint64_t unit) const {
    using Buffer = std::vector<float>;
    oneapi::tbb::enumerable_thread_specific<Buffer> buffers;
    const std::size_t count = inputs_.size();
    inputs_.scan(
        buffers,
        [&](Buffer& buffer, std::uint64_t first, std::size_t elements) {
          buffer.resize((count + 1) * elements);
          const auto get_input_row = [&](std::size_t i) { return std::span(buffer).subspan(i * elements, elements); };
          const auto base = inputs_.has_base() ? get_input_row(count) : std::span<float>();
          if (inputs_.has_base()) inputs_.read_base(first, base);
          for (std::size_t i = 0; i < count; ++i) inputs_.read(i, first, base, get_input_row(i));
          const auto numbers = std::span(buffer).first(count * elements);
          InnerProducts products = compute_inner_products(numbers, count);
          if (!products.are_finite()) {
            leave_out_infinite_elements(numbers, count);
            products = compute_inner_products(numbers, count);
          }
          units[static_cast<std::size_t>(first / unit)].add(products);
        },
        unit);
  }

  MergeInputs inputs_;
  const MergeMethod& method_;
  ParameterValues values_;
  Products products_;
  std::shared_ptr<const Shares> fixed_;  // null: the shares follow from inner products
  LazyValue<const Shares> kept_;
};

}  // namespace

BlobPtr make_sum_blob(const MergeMethod& method, MergeInputs inputs, ParameterValues values) {
  return std::make_shared<SumBlob>(method, std::move(inputs), std::move(values));
}

BlobPtr make_merged_blob(const MergeMethod& method, TensorMerge merge) {
  MergeInputs inputs(std::move(merge.inputs), merge.base ? &*merge.base : nullptr);
  std::vector<Part> parts = inputs.parts();
  BlobPtr numbers = method.shares != nullptr
                        ? make_sum_blob(method, std::move(inputs), std::move(merge.values))
                        : make_task_blob(method, std::move(inputs), std::move(merge.values), std::move(merge.keys));
  return add_overflow_checks(fmt::format("tensor {}: merged", merge.name), std::move(numbers), std::move(parts));
}

}  // namespace poise
