// compute_statistics: measures the range, the mean and other properties of each tensor's numbers.
//
//   for (const poise::TensorStatistics& tensor : poise::compute_statistics(poise::open("model.gguf")).tensors)
//     std::cout << tensor.name << " " << tensor.mean << " " << tensor.deviation << "\n";
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/progress.hpp>

namespace poise {

// Counts a sample of the numbers in eight bins of equal width from `low` to `high`. Numbers outside count in the first
// and the last bin. On each side of the mean, the range ends after four standard deviations, or at the extreme number
// if it is nearer.
struct Histogram {
  double low = 0;
  double high = 0;
  std::array<std::uint64_t, 8> counts{};
};

// Describes the numbers of one tensor: codes are decoded, booleans are 0 and 1, a sparse tensor has its zeros.
struct TensorStatistics {
  std::string name;
  Shape shape;
  std::string type;  // "bf16", "q4_k", "sparse_csr f16": how the elements are stored
  std::uint64_t elements = 0;
  // The reason why there are no statistics: the numbers are complex, or their type, layout or encoding is unknown.
  // Empty: there are statistics.
  std::string problem = {};

  // The numbers from min to rms cover the finite elements; NaN if there are none. min and max are exact, but integers
  // beyond 2^53 are rounded to float64.
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  // Sums are float64 and merged in the order of the elements, so that every number of threads gives the same bits.
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = std::numeric_limits<double>::quiet_NaN();  // standard deviation, divided by the count
  double rms = std::numeric_limits<double>::quiet_NaN();        // root of the mean square

  // These are exact counts of elements. Subnormal numbers are nearer to zero than the normal numbers of the stored
  // type, or of float32 for codes.
  std::uint64_t zeros = 0;
  std::uint64_t subnormals = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  std::uint64_t outliers = 0;  // finite, and further from the mean than six standard deviations

  // Holds the index in the first dimension whose numbers have the largest rms: a row of a matrix, an element of a
  // vector; of equal ones the first.
  struct Channel {
    std::uint64_t index = 0;
    double rms = 0;
  };
  std::optional<Channel> largest_channel = {};  // std::nullopt without a dimension or without finite numbers
  std::optional<Histogram> histogram = {};      // std::nullopt without finite numbers
};

struct ModelStatistics {
  std::vector<TensorStatistics> tensors;  // in the model's order
};

struct StatisticsOptions {
  // Shell patterns over tensor names, as in ConvertOptions. `only` empty: all.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};
  Progress progress = {};
};

// Computes the statistics of the selected tensors. Reads each tensor once, and some parts of it a second time to count
// outliers. Uses all processors. Memory holds about a megabyte for each processor, possible outliers of the tensors in
// progress, and what reading compressed and sparse tensors needs. Does not check digests. Throws what reading the blobs
// throws, cancelled, and bad_argument for a pattern that matches no tensor.
ModelStatistics compute_statistics(const Model& model, const StatisticsOptions& options = {});

}  // namespace poise
