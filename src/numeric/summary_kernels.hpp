// Summarizes numbers: counts, extremes, mean and standard deviation. The summaries of pieces can be merged.
//
// Sums are float64. Those of float32 numbers are sums of distances from FarNumbers::center: with a center near the
// mean, a deviation that is small compared with the mean keeps its digits. Chan's formula merges the moments of pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <poise/dtype.hpp>

namespace poise {

// Describes some finite numbers. Their mean is mean * 2^exponent; the sum of their squared distances from the mean is
// squares * 4^exponent. The exponent is 0 unless squares of the numbers might overflow or underflow float64.
struct Moments {
  std::uint64_t count = 0;
  double mean = 0;
  double squares = 0;
  int exponent = 0;

  void merge(Moments other);
  // Each function returns NaN if there are no numbers.
  double find_mean() const;
  double find_deviation() const;  // divides by the count
  double find_rms() const;
};

struct Summary {
  Moments moments;
  double min = std::numeric_limits<double>::infinity();  // over finite numbers
  double max = -std::numeric_limits<double>::infinity();
  std::uint64_t zeros = 0;
  std::uint64_t subnormals = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;

  void merge(const Summary& other);
};

// Collects the far numbers of a piece: finite numbers that are further than `reach` from `center`. Keeps at most `most`
// of them. The caller guesses `reach` so that all outliers are far numbers. Once a piece has far numbers on both sides
// of the center, its other numbers cannot be extremes.
struct FarNumbers {
  float center = 0;  // also the center of the sums
  float reach = std::numeric_limits<float>::max();
  std::size_t most = 0;
  std::vector<float> numbers = {};
  bool is_complete = true;  // false if there are more than `most`
  bool has_low = false;     // true if a far number is below the center; has_high: above it
  bool has_high = false;

  // Returns true only if every number of the piece that is below `low` or above `high` is collected.
  bool covers(double low, double high) const;
};

// Counts a number as subnormal if it is not zero and its magnitude is below `smallest_normal`. Requires: at most 2^24
// numbers.
Summary summarize(std::span<const float> numbers, float smallest_normal, FarNumbers& far);
// Summarizes f16 or bf16 numbers as they are stored, about twice as fast as after a cast. Returns std::nullopt for
// other types, and if far.center is not 0.
std::optional<Summary> summarize_stored_numbers(DType dtype, std::span<const std::byte> numbers, float smallest_normal,
                                                FarNumbers& far);
Summary summarize(std::span<const double> numbers, double smallest_normal);

// Holds a sum of squares of float64 numbers, which does not overflow or underflow: large and small numbers have sums of
// their own, in which they are scaled by a power of two.
struct SquareSums {
  double usual = 0;  // NaN if a number is not finite
  double large = 0;
  double small = 0;

  SquareSums& operator+=(double squares) {
    usual += squares;
    return *this;
  }
  SquareSums& operator+=(const SquareSums& other);
  // Returns the root of the sum divided by `count`.
  double find_rms(double count) const;
};

// Each function returns the sum of the squares, or NaN if a number is not finite. It adds squares of float32 numbers in
// float32, unless the sum overflows or underflows; this is precise enough for a chart.
double sum_squares(std::span<const float> numbers);
SquareSums sum_squares(std::span<const double> numbers);
// Returns the sum of the squares of numbers as they are stored, in f16 or bf16.
double sum_stored_squares(DType dtype, std::span<const std::byte> numbers);

struct LargestRow {
  std::size_t row = 0;
  double rms = std::numeric_limits<double>::quiet_NaN();  // NaN if no row has finite numbers
};
// Returns the first row with the largest root mean square of its finite numbers. Requires: rows of `length` numbers, at
// least one row.
LargestRow find_largest_row(std::span<const float> rows, std::size_t length);

// Returns how many finite numbers are below `low` or above `high`.
std::uint64_t count_outside(std::span<const float> numbers, double low, double high);
std::uint64_t count_outside(std::span<const double> numbers, double low, double high);

// Returns true for boolean, and for integer types of at most 16 bits: float32 holds all of their numbers exactly.
bool is_small_integer(DType dtype);
// Each function converts out.size() elements. Requires: an integer type or boolean; for float32, is_small_integer().
void convert_integers(DType dtype, const std::byte* in, std::span<float> out);
void convert_integers(DType dtype, const std::byte* in, std::span<double> out);

}  // namespace poise
