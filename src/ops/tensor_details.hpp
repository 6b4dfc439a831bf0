// Computes statistics of tensors, with more details than compute_statistics() returns, in the same pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/statistics.hpp>

#include "ops/heat_map.hpp"

namespace poise {

// Counts a sample of the numbers, as Histogram does, with more bins.
struct FineHistogram {
  double low = 0;
  double high = 0;
  std::vector<std::uint64_t> counts;  // empty: there are no finite numbers
};
inline constexpr std::size_t kFineBins = 48;

struct TensorDetails {
  HeatMap map;  // sparse tensors have none
  FineHistogram histogram;
};

struct DetailedStatistics {
  std::vector<TensorStatistics> tensors;
  std::vector<TensorDetails> details;  // one for each tensor
};

// Computes the statistics and the details of some tensors of a model. `find_side` returns the side of a tensor's map in
// cells; 0: no map. Throws what reading the blobs throws, and cancelled.
DetailedStatistics compute_details(const Model& model, const std::vector<const Tensor*>& tensors,
                                   const std::function<std::size_t(const Tensor&)>& find_side,
                                   const Progress& progress);

}  // namespace poise
