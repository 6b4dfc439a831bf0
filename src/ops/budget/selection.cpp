#include "ops/budget/budget.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "bytes/checked.hpp"

namespace poise {
namespace {

// Returns the error that each byte removes on the step from one candidate to another.
double compute_gain(const SizeCandidate& from, const SizeCandidate& to) {
  return (from.error - to.error) / static_cast<double>(to.bytes - from.bytes);
}

// Returns the indices of the candidates on the lower convex hull, from the smallest one to that with the least error.
std::vector<std::size_t> find_hull(const std::vector<SizeCandidate>& candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(candidates[i].bytes, candidates[i].error, i); });
  std::vector<std::size_t> hull;
  for (const std::size_t next : order) {
    const SizeCandidate& point = candidates[next];
    if (!hull.empty() && point.error >= candidates[hull.back()].error) continue;
    while (hull.size() >= 2) {
      const SizeCandidate& last = candidates[hull.back()];
      if (compute_gain(candidates[hull[hull.size() - 2]], last) >= compute_gain(last, point)) break;
      hull.pop_back();
    }
    hull.push_back(next);
  }
  return hull;
}

}  // namespace

SizeSelection::SizeSelection(const std::vector<std::vector<SizeCandidate>>& items) {
  for (std::size_t item = 0; item < items.size(); ++item) {
    const std::vector<SizeCandidate>& candidates = items[item];
    const std::vector<std::size_t> hull = find_hull(candidates);
    first_.push_back(hull.front());
    least_bytes_ = saturating_add(least_bytes_, candidates[hull.front()].bytes);
    for (std::size_t i = 1; i < hull.size(); ++i) {
      const SizeCandidate& from = candidates[hull[i - 1]];
      const SizeCandidate& to = candidates[hull[i]];
      steps_.push_back({item, hull[i - 1], hull[i], to.bytes - from.bytes, compute_gain(from, to)});
    }
  }
  std::ranges::stable_sort(steps_, std::ranges::greater(), &Step::gain);
}

std::vector<std::size_t> SizeSelection::select(std::uint64_t budget) const {
  std::vector<std::size_t> chosen = first_;
  if (budget <= least_bytes_) return chosen;
  std::uint64_t left = budget - least_bytes_;
  for (const Step& step : steps_) {
    if (step.bytes > left || chosen[step.item] != step.from) continue;
    chosen[step.item] = step.to;
    left -= step.bytes;
  }
  return chosen;
}

}  // namespace poise
