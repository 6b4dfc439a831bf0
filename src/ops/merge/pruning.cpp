// Prunes differences as TIES, DARE and DELLA do. docs/merging.md has the formulas with their sources.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "ops/merge/methods.hpp"

namespace poise {
namespace {

// Returns what a dropped difference becomes. A difference that is not finite stays, because the result would hide it.
float drop(float difference) { return std::isfinite(difference) ? 0.0F : difference; }

std::uint32_t get_magnitude_bits(float number) { return std::bit_cast<std::uint32_t>(number) & 0x7fffffffU; }

// Finds the magnitude of the k-th largest of an input's differences. It compares magnitudes by their bits as float32,
// which have the same order. Two passes each count the values of one half of the bits.
class Selection {
 public:
  Selection(const MergeInputs& inputs, std::size_t model, std::uint64_t count) : inputs_(inputs), model_(model) {
    const auto high = count_values([](std::uint32_t bits) { return std::pair(true, bits >> kHalf); });
    const std::uint32_t top = find_value(high, count);
    const auto low = count_values([top](std::uint32_t bits) { return std::pair(bits >> kHalf == top, bits & kLow); });
    magnitude_ = top << kHalf | find_value(low, count);
    equal_ = low[magnitude_ & kLow];
    wanted_ = count;
  }

  std::uint32_t magnitude() const { return magnitude_; }

  // Returns the index of the last element with that magnitude among the k largest. Of equal magnitudes, earlier
  // elements count as larger. If all elements with that magnitude are among the k largest, returns the number of
  // elements.
  std::uint64_t find_last() const {
    if (wanted_ == equal_) return inputs_.elements();
    std::vector<std::uint32_t> chunks(
        static_cast<std::size_t>((inputs_.elements() + MergeInputs::kChunk - 1) / MergeInputs::kChunk));
    visit([&](Counts&, std::uint64_t first, std::span<const float> differences) {
      chunks[static_cast<std::size_t>(first / MergeInputs::kChunk)] += static_cast<std::uint32_t>(
          std::ranges::count(differences, magnitude_, [](float number) { return get_magnitude_bits(number); }));
    });
    std::uint64_t left = wanted_;
    std::uint64_t first = 0;
    for (const std::uint32_t count : chunks) {
      if (left <= count) break;
      left -= count;
      first += MergeInputs::kChunk;
    }
    std::vector<std::uint64_t> found;  // the elements of the chunk, in order, because one thread visits it
    visit([&](Counts&, std::uint64_t begin, std::span<const float> differences) {
      if (begin < first || begin >= first + MergeInputs::kChunk) return;
      for (std::size_t i = 0; i < differences.size(); ++i) {
        if (get_magnitude_bits(differences[i]) == magnitude_) found.push_back(begin + i);
      }
    });
    return found.at(static_cast<std::size_t>(left - 1));
  }

 private:
  static constexpr unsigned kHalf = 16;
  static constexpr std::uint32_t kLow = (1U << kHalf) - 1;
  using Counts = std::vector<std::uint64_t>;

  template <typename Look>
  void visit(const Look& look) const {
    oneapi::tbb::enumerable_thread_specific<Counts> locals;
    visit(locals, look);
  }

  template <typename Look>
  void visit(oneapi::tbb::enumerable_thread_specific<Counts>& locals, const Look& look) const {
    inputs_.scan(locals, [&](Counts& local, std::uint64_t first, std::size_t count) {
      std::array<float, kBlockSize> base;
      std::array<float, kBlockSize> numbers;
      inputs_.read_base(first, std::span(base).first(count));
      inputs_.read(model_, first, std::span(base).first(count), std::span(numbers).first(count));
      look(local, first, std::span<const float>(numbers).first(count));
    });
  }

  // Counts how often value_of() returns each value together with true.
  template <typename ValueOf>
  Counts count_values(const ValueOf& value_of) const {
    oneapi::tbb::enumerable_thread_specific<Counts> locals([] { return Counts(kLow + 1); });
    visit(locals, [&](Counts& counts, std::uint64_t, std::span<const float> differences) {
      for (const float number : differences) {
        const auto [counts_it, value] = value_of(get_magnitude_bits(number));
        if (counts_it) ++counts[value];
      }
    });
    Counts all(kLow + 1);
    for (const Counts& counts : locals) std::ranges::transform(all, counts, all.begin(), std::plus());
    return all;
  }

  // Returns the value of the count-th largest, and sets `count` to its place among those of the same value.
  static std::uint32_t find_value(const Counts& counts, std::uint64_t& count) {
    std::uint32_t value = kLow;
    for (; value > 0 && counts[value] < count; --value) count -= counts[value];
    return value;
  }

  const MergeInputs& inputs_;
  std::size_t model_;
  std::uint32_t magnitude_ = 0;
  std::uint64_t equal_ = 0;   // the number of differences with that magnitude
  std::uint64_t wanted_ = 0;  // how many of these stay
};

class KeepLargest final : public Pruning {
 public:
  KeepLargest(std::uint32_t magnitude, std::uint64_t last) : magnitude_(magnitude), last_(last) {}

  void prune(std::uint64_t first, std::span<float> differences) const override {
    for (std::size_t i = 0; i < differences.size(); ++i) {
      const std::uint32_t magnitude = get_magnitude_bits(differences[i]);
      if (magnitude < magnitude_ || (magnitude == magnitude_ && first + i > last_))
        differences[i] = drop(differences[i]);
    }
  }

 private:
  std::uint32_t magnitude_;
  std::uint64_t last_;  // elements with that magnitude after this index become 0
};

class DropAtRandom final : public Pruning {
 public:
  DropAtRandom(std::uint64_t key, double density, bool rescales)
      : key_(key), density_(density), scale_(rescales && density > 0 ? static_cast<float>(1 / density) : 1) {}

  void prune(std::uint64_t first, std::span<float> differences) const override {
    for (std::size_t i = 0; i < differences.size(); ++i)
      differences[i] = make_random_number(key_, first + i) < density_ ? differences[i] * scale_ : drop(differences[i]);
  }

 private:
  std::uint64_t key_;
  double density_;
  float scale_;
};

class DropByMagnitude final : public Pruning {
 public:
  DropByMagnitude(std::uint64_t key, double density, double epsilon, bool rescales, std::uint64_t row_elements)
      : key_(key), density_(density), epsilon_(epsilon), rescales_(rescales), row_elements_(row_elements) {}

  bool needs_whole_rows() const override { return true; }

  void prune(std::uint64_t first, std::span<float> differences) const override {
    const auto length = static_cast<std::size_t>(row_elements_);
    std::vector<std::uint32_t> order(length);
    for (std::size_t begin = 0; begin < differences.size(); begin += length) {
      const std::span<float> row = differences.subspan(begin, length);
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(get_magnitude_bits(row[i]), i); });
      for (std::size_t rank = 0; rank < length; ++rank) {
        const std::uint32_t i = order[rank];
        const double share = length == 1 ? 0.5 : static_cast<double>(rank) / static_cast<double>(length - 1);
        const double kept = density_ - epsilon_ + 2 * epsilon_ * share;
        const bool keeps = make_random_number(key_, first + begin + i) < kept;
        row[i] = !keeps ? drop(row[i]) : rescales_ ? row[i] * static_cast<float>(1 / kept) : row[i];
      }
    }
  }

 private:
  std::uint64_t key_;
  double density_;
  double epsilon_;
  bool rescales_;
  std::uint64_t row_elements_;
};

}  // namespace

std::unique_ptr<const Pruning> make_keep_largest_pruning(const PrunedInput& input) {
  const double density = input.values.get("density", input.model);
  const std::uint64_t elements = input.inputs.elements();
  if (density >= 1 || elements == 0) return nullptr;
  const auto count = static_cast<std::uint64_t>(density * static_cast<double>(elements));
  const Selection selection(input.inputs, input.model, std::max<std::uint64_t>(count, 1));
  return std::make_unique<KeepLargest>(selection.magnitude(), selection.find_last());
}

std::unique_ptr<const Pruning> make_drop_at_random_pruning(const PrunedInput& input) {
  const double density = input.values.get("density", input.model);
  if (density >= 1) return nullptr;
  return std::make_unique<DropAtRandom>(input.key, density, input.values.get("rescale") != 0);
}

std::unique_ptr<const Pruning> make_drop_by_magnitude_pruning(const PrunedInput& input) {
  const double density = input.values.get("density", input.model);
  const double epsilon = input.values.get("epsilon", input.model);
  if (density >= 1) return nullptr;
  return std::make_unique<DropByMagnitude>(input.key, density, epsilon, input.values.get("rescale") != 0,
                                           input.inputs.row_elements());
}

std::uint64_t make_random_key(std::uint64_t seed, std::uint64_t model, std::string_view tensor) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  for (const std::uint64_t number : {seed, model}) {
    for (unsigned shift = 0; shift < 64; shift += 8) add(number >> shift & 0xffU);
  }
  for (const char letter : tensor) add(static_cast<unsigned char>(letter));
  return hash;
}

double make_random_number(std::uint64_t key, std::uint64_t element) {
  std::uint64_t bits = key + (element + 1) * 0x9e3779b97f4a7c15U;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
  return static_cast<double>((bits ^ bits >> 31) >> 11) * 0x1p-53;
}

}  // namespace poise
