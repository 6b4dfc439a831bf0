// Merges the summaries of pieces, and summarizes float64 numbers, whose squares may overflow or underflow. The vector
// loops for other types are in summary_kernels.cpp.
#include <algorithm>
#include <cmath>

#include "numeric/summary_kernels.hpp"

namespace poise {

void Moments::move_mean(double distance) {
  const double start = mean;
  rest += distance;
  mean += rest;
  rest -= mean - start;
}

void Moments::merge(Moments other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  if (exponent != other.exponent) {
    Moments& smaller = exponent < other.exponent ? *this : other;
    const int largest = std::max(exponent, other.exponent);
    smaller.squares = std::ldexp(smaller.squares, 2 * (smaller.exponent - largest));
    smaller.mean = std::ldexp(smaller.mean, smaller.exponent - largest);
    smaller.rest = std::ldexp(smaller.rest, smaller.exponent - largest);
    smaller.exponent = largest;
  }
  const double all = static_cast<double>(count) + static_cast<double>(other.count);
  const double distance = other.mean - mean + (other.rest - rest);
  const double share = static_cast<double>(other.count) / all;
  move_mean(distance * share);
  squares += other.squares + distance * distance * share * static_cast<double>(count);
  count += other.count;
}

double Moments::find_mean() const { return count == 0 ? NAN : std::ldexp(mean, exponent); }

double Moments::find_deviation() const {
  return count == 0 ? NAN : std::ldexp(std::sqrt(squares / static_cast<double>(count)), exponent);
}

double Moments::find_rms() const {
  return count == 0 ? NAN : std::ldexp(std::sqrt(mean * mean + squares / static_cast<double>(count)), exponent);
}

void Summary::merge(const Summary& other) {
  moments.merge(other.moments);
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  zeros += other.zeros;
  subnormals += other.subnormals;
  nans += other.nans;
  infinities += other.infinities;
}

bool FarNumbers::covers(double low, double high) const {
  // A number that is not collected has a rounded distance of at most `reach`.
  const double reached = static_cast<double>(reach) * (1 + 1e-6);
  const auto middle = static_cast<double>(center);
  return is_complete && middle - reached >= low && middle + reached <= high;
}

Summary summarize(std::span<const double> numbers, double smallest_normal) {
  Summary summary;
  double largest = 0;
  for (const double number : numbers) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  // Squares of numbers from 2^-400 to 2^400, and of their differences, neither overflow nor underflow.
  constexpr int kPlain = 400;
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  Moments& moments = summary.moments;
  moments.exponent = std::abs(exponent) > kPlain ? std::max(exponent, -1000) : 0;
  const double scale = std::ldexp(1, -moments.exponent);
  double sum = 0;
  for (const double number : numbers) {
    if (std::isnan(number)) ++summary.nans;
    if (std::isinf(number)) ++summary.infinities;
    if (!std::isfinite(number)) continue;
    if (number == 0) ++summary.zeros;
    if (number != 0 && std::abs(number) < smallest_normal) ++summary.subnormals;
    summary.min = std::min(summary.min, number);
    summary.max = std::max(summary.max, number);
    sum += number * scale;
    ++moments.count;
  }
  if (moments.count == 0) return summary;
  // The mean is rounded, and far from zero this error may be as large as the deviation. The sum of the distances shows
  // the error.
  const auto count = static_cast<double>(moments.count);
  moments.mean = sum / count;
  double distances = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const double distance = number * scale - moments.mean;
    distances += distance;
    moments.squares += distance * distance;
  }
  moments.move_mean(distances / count);
  moments.squares = std::max(0.0, moments.squares - distances * (distances / count));
  return summary;
}

namespace {

// Numbers above kMostUsual are multiplied by kDown, and those below kLeastUsual by kUp. So no square underflows, and
// the sum of 2^62 squares does not overflow.
constexpr double kMostUsual = 0x1p480;
constexpr double kLeastUsual = 0x1p-480;
constexpr double kDown = 0x1p-600;
constexpr double kUp = 0x1p600;

}  // namespace

SquareSums& SquareSums::operator+=(const SquareSums& other) {
  usual += other.usual;
  large += other.large;
  small += other.small;
  return *this;
}

double SquareSums::find_rms(double count) const {
  if (large > 0 && !std::isnan(usual)) return std::sqrt((large + usual * kDown * kDown) / count) * kUp;
  if (usual == 0) return std::sqrt(small / count) * kDown;
  return std::sqrt((usual + small * kDown * kDown) / count);
}

SquareSums sum_squares(std::span<const double> numbers) {
  SquareSums sums;
  for (const double number : numbers) {
    const double size = std::abs(number);
    if (!std::isfinite(size)) {
      sums.usual = NAN;
    } else if (size > kMostUsual) {
      sums.large += size * kDown * (size * kDown);
    } else if (size < kLeastUsual) {
      sums.small += size * kUp * (size * kUp);
    } else {
      sums.usual += size * size;
    }
  }
  return sums;
}

std::uint64_t count_outside(std::span<const double> numbers, double low, double high) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      numbers, [&](double number) { return std::isfinite(number) && (number < low || number > high); }));
}

}  // namespace poise
