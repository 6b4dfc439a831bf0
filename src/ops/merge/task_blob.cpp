// Computes the base plus a weighted sum of the models' differences from it. A pruning may first drop some differences.
#include <cmath>
#include <deque>
#include <mutex>
#include <utility>

#include "io/threads.hpp"
#include "ops/merge/methods.hpp"

namespace poise {
namespace {

using Prunings = std::vector<std::unique_ptr<const Pruning>>;

// Keeps the rows that were computed last, because blocks of the result end inside rows. Thread-safe.
class RowCache {
 public:
  using Row = std::shared_ptr<const std::vector<float>>;

  template <typename Make>
  Row get(std::uint64_t number, const Make& make) const {
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [kept, row] : rows_) {
        if (kept == number) return row;
      }
    }
    Row row = make();
    const std::scoped_lock lock(mutex_);
    rows_.emplace_back(number, row);
    if (rows_.size() > kMostRows) rows_.pop_front();
    return row;
  }

  void clear() const {
    const std::scoped_lock lock(mutex_);
    rows_.clear();
  }

 private:
  static constexpr std::size_t kMostRows = 64;  // the rows that are kept: at least two for each thread on most machines

  mutable std::mutex mutex_;
  mutable std::deque<std::pair<std::uint64_t, Row>> rows_;
};

class TaskBlob final : public FloatBlob {
 public:
  TaskBlob(const MergeMethod& method, MergeInputs inputs, ParameterValues values, std::vector<std::uint64_t> keys)
      : FloatBlob(inputs.elements()),
        inputs_(std::move(inputs)),
        method_(method),
        values_(std::move(values)),
        keys_(std::move(keys)) {
    for (std::size_t i = 0; i < values_.models(); ++i) weights_.push_back(static_cast<float>(values_.get("weight", i)));
    for (const float weight : weights_) sum_ += weight;
  }

  bool seekable() const override { return inputs_.seekable(); }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    const auto prunings = kept_.get([this] { return std::make_shared<const Prunings>(make_prunings()); });
    const bool by_rows =
        std::ranges::any_of(*prunings, [](const auto& pruning) { return pruning && pruning->needs_whole_rows(); });
    if (!by_rows) return add_differences(*prunings, first, out);
    const std::uint64_t length = inputs_.row_elements();
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t row = (first + done) / length;
      const auto begin = static_cast<std::size_t>((first + done) % length);
      const RowCache::Row numbers = rows_.get(row, [&] {
        auto made = std::make_shared<std::vector<float>>(static_cast<std::size_t>(length));
        add_differences(*prunings, row * length, *made);
        return made;
      });
      const std::size_t count = std::min(numbers->size() - begin, out.size() - done);
      std::copy_n(numbers->data() + begin, count, out.data() + done);
      done += count;
    }
  }
  void drop_caches() const override {
    kept_.release();
    rows_.clear();
  }

 private:
  Prunings make_prunings() const {
    Prunings prunings;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      prunings.push_back(method_.make_pruning({inputs_, i, values_, keys_[i]}));
    return prunings;
  }

  void add_differences(const Prunings& prunings, std::uint64_t first, std::span<float> out) const {
    const std::size_t count = out.size();
    std::vector<float> weighted(inputs_.size() * count);
    const auto get_input_numbers = [&](std::size_t i) { return std::span(weighted).subspan(i * count, count); };
    inputs_.read_base(first, out);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_.read(i, first, out, get_input_numbers(i));
      if (prunings[i]) prunings[i]->prune(first, get_input_numbers(i));
      for (float& number : get_input_numbers(i)) number *= weights_[i];
    }
    const auto scale = static_cast<float>(values_.get("lambda"));
    const bool normalizes = values_.get("normalize") != 0;
    for (std::size_t k = 0; k < count; ++k) {
      float sum = 0;
      for (std::size_t i = 0; i < weights_.size(); ++i) sum += weighted[i * count + k];
      float divisor = sum_;
      // NaN has no sign and stays.
      if (method_.elects_signs && !std::isnan(sum)) {
        // The sign of the sum wins; a sum of 0 counts as positive.
        const bool is_positive = sum >= 0;
        sum = 0;
        divisor = 0;
        for (std::size_t i = 0; i < weights_.size(); ++i) {
          const float number = weighted[i * count + k];
          if (is_positive ? !(number > 0) : !(number < 0)) continue;
          sum += number;
          divisor += weights_[i];
        }
      }
      constexpr float kNoDivisor = 1e-8F;
      if (normalizes && std::abs(divisor) >= kNoDivisor) sum /= divisor;
      out[k] += scale * sum;
    }
  }

  MergeInputs inputs_;
  const MergeMethod& method_;
  ParameterValues values_;
  std::vector<std::uint64_t> keys_;
  std::vector<float> weights_;
  float sum_ = 0;  // the sum of the weights
  LazyValue<const Prunings> kept_;
  RowCache rows_;
};

}  // namespace

BlobPtr make_task_blob(const MergeMethod& method, MergeInputs inputs, ParameterValues values,
                       std::vector<std::uint64_t> keys) {
  return std::make_shared<TaskBlob>(method, std::move(inputs), std::move(values), std::move(keys));
}

}  // namespace poise
