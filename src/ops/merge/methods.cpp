// Has the table of methods, and the formulas of methods whose result is a sum. docs/merging.md has them with their
// sources.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "ops/merge/methods.hpp"

namespace poise {
namespace {

using Kind = MergeParameter::Kind;
using Base = MergeMethod::Base;

constexpr double kAny = 1e6;  // a magnitude that no useful weight has

constexpr MergeParameter kWeight = {"weight", Kind::number, 1, -kAny, kAny, true};
constexpr MergeParameter kDensity = {"density", Kind::number, 1, 0, 1, true};
constexpr MergeParameter kLambda = {"lambda", Kind::number, 1, -kAny, kAny};
constexpr MergeParameter kInt8Mask = {"int8_mask", Kind::flag, 0, 0,
                                      1};  // saves memory in mergekit; has no effect here

constexpr MergeParameter make_normalize_parameter(double usual) { return {"normalize", Kind::flag, usual, 0, 1}; }
constexpr MergeParameter kRescale = {"rescale", Kind::flag, 1, 0, 1};
constexpr MergeParameter kNoRescale = {
    "rescale", Kind::flag, 0, 0, 0, false, "TIES does not scale the differences that it keeps"};

constexpr std::array kLinear = {kWeight, make_normalize_parameter(1)};
constexpr std::array kSlerp = {MergeParameter{"t", Kind::number, 0.5, 0, 1}};
constexpr std::array kNuslerp = {
    kWeight, MergeParameter{"nuslerp_flatten", Kind::flag, 1, 0, 1},
    MergeParameter{"nuslerp_row_wise", Kind::flag, 0, 0, 0, false, "without nuslerp_flatten each row is a vector"}};
constexpr std::array kTask = {kWeight, make_normalize_parameter(0), kLambda, kInt8Mask};
constexpr std::array kTies = {kWeight, kDensity, make_normalize_parameter(1), kNoRescale, kLambda, kInt8Mask};
constexpr std::array kDare = {kWeight, kDensity, make_normalize_parameter(0), kRescale, kLambda, kInt8Mask};
constexpr std::array kDella = {
    kWeight, kDensity, MergeParameter{"epsilon", Kind::number, 0.15, 0, 1, true}, make_normalize_parameter(0), kRescale,
    kLambda, kInt8Mask};
constexpr std::array kModelStock = {MergeParameter{"filter_wise", Kind::flag, 0, 0, 1}};
constexpr std::array kKarcher = {MergeParameter{"max_iter", Kind::count, 10, 1, 10000},
                                 MergeParameter{"tol", Kind::number, 1e-5, 0, 1}};
constexpr std::array kPassthrough = {MergeParameter{"scale", Kind::number, 1, -kAny, kAny, true}};

// Each compute_..._shares() returns the factor of each model's tensor in the weighted sum that a method makes.

constexpr double kNoDivisor = 1e-8;

std::vector<double> get_weights(const ParameterValues& values) {
  std::vector<double> weights(values.models());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = values.get("weight", i);
  return weights;
}

// Returns w_i, or w_i / sum(w) if the weights are normalized.
std::vector<double> compute_linear_shares(const ParameterValues& values, const InnerProducts*) {
  std::vector<double> weights = get_weights(values);
  if (values.get("normalize") == 0) return weights;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (std::abs(sum) < kNoDivisor)
    throw Error(
        ErrorKind::bad_argument,
        "the weights of linear add up to 0, so they cannot be normalized: change the weights, or set normalize: false");
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> compute_task_shares(const ParameterValues& values, const InnerProducts*) {
  std::vector<double> weights = get_weights(values);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double divisor = values.get("normalize") == 0 || std::abs(sum) < kNoDivisor ? 1 : sum;
  for (double& weight : weights) weight *= values.get("lambda") / divisor;
  return weights;
}

std::vector<double> compute_passthrough_shares(const ParameterValues& values, const InnerProducts*) {
  return {values.get("scale")};
}

// Returns the shares of two tensors in their spherical interpolation: t is 0 at the first and 1 at the second. `cosine`
// is that of the angle between the tensors.
std::vector<double> compute_arc_shares(double cosine, double t) {
  const double angle = std::acos(cosine);
  return {std::sin((1 - t) * angle) / std::sin(angle), std::sin(t * angle) / std::sin(angle)};
}

// Returns 0 for a tensor of zeros, which has no direction.
double compute_cosine(const InnerProducts& products, std::size_t i, std::size_t j) {
  const double norms = products.compute_norm(i) * products.compute_norm(j);
  return std::clamp(norms == 0 ? 0 : products.at(i, j) / norms, -1.0, 1.0);
}

std::vector<double> compute_slerp_shares(const ParameterValues& values, const InnerProducts* products) {
  constexpr double kNearlyParallel = 0.9995;
  const double t = values.get("t");
  const double cosine = compute_cosine(*products, 0, 1);
  if (std::abs(cosine) > kNearlyParallel) return {1 - t, t};
  return compute_arc_shares(cosine, t);
}

Products choose_nuslerp_products(const ParameterValues& values) {
  return values.get("nuslerp_flatten") == 0 ? Products::by_rows : Products::whole;
}

std::vector<double> compute_nuslerp_shares(const ParameterValues& values, const InnerProducts* products) {
  constexpr double kNoWeight = 1e-6;
  const double sum = values.get("weight", 0) + values.get("weight", 1);
  const double t = std::abs(sum) < kNoWeight ? 0.5 : values.get("weight", 1) / sum;
  const double cosine = compute_cosine(*products, 0, 1);
  if (std::sqrt(1 - cosine * cosine) < kNoDivisor) return {1 - t, t};
  return compute_arc_shares(cosine, t);
}

Products choose_stock_products(const ParameterValues& values) {
  return values.get("filter_wise") == 0 ? Products::whole : Products::by_rows;
}

// Returns t / n for each model, with t = n c / (1 + (n - 1) c). c is the mean cosine over all pairs of differences.
std::vector<double> compute_stock_shares(const ParameterValues&, const InnerProducts* products) {
  const std::size_t count = products->size();
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      sum += compute_cosine(*products, i, j);
    }
  }
  const auto n = static_cast<double>(count);
  const double cosine = sum / (n * (n - 1) / 2);
  const double divisor = 1 + (n - 1) * cosine;
  // Differences that cancel each other have no common direction, so the base stays.
  if (std::abs(divisor) < kNoDivisor) return std::vector<double>(count, 0.0);
  return std::vector<double>(count, cosine / divisor);
}

// Computes the Karcher mean of the inputs' directions on the unit sphere. The mean is always a weighted sum of the
// inputs' unit vectors. `mean` has only the weights, because inner products of the inputs suffice to compute them.
class KarcherMean {
 public:
  KarcherMean(const InnerProducts& products, double tolerance) : tolerance_(tolerance) {
    // The factor of an input is about scale_ divided by its norm, and must be a float32 number. next to the others, a
    // smaller input counts as zeros.
    constexpr double kLeastShare = 0x1p-100;
    for (std::size_t i = 0; i < products.size(); ++i)
      scale_ += products.compute_norm(i) / static_cast<double>(products.size());
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (products.compute_norm(i) > kLeastShare * scale_) used_.push_back(i);
    }
    cosines_.assign(used_.size(), std::vector<double>(used_.size(), 1));
    for (std::size_t i = 0; i < used_.size(); ++i) {
      for (std::size_t j = 0; j < used_.size(); ++j) {
        if (i == j) continue;
        cosines_[i][j] = compute_cosine(products, used_[i], used_[j]);
      }
    }
  }

  std::vector<double> compute_shares(const InnerProducts& products, double most_rounds) const {
    std::vector<double> shares(products.size());
    if (used_.empty()) return shares;
    std::vector<double> mean(used_.size(), 1.0 / static_cast<double>(used_.size()));
    if (compute_norm(mean) < tolerance_) {
      std::ranges::fill(mean, 0.0);
      mean.front() = 1;
    }
    scale(mean, 1 / compute_norm(mean));
    for (double round = 0; round < most_rounds; ++round) {
      const std::vector<double> step = compute_step(mean);
      const double length = compute_norm(step);
      if (length < tolerance_) break;
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i] = std::cos(length) * mean[i] + std::sin(length) / length * step[i];
      scale(mean, 1 / compute_norm(mean));
    }
    for (std::size_t i = 0; i < used_.size(); ++i)
      shares[used_[i]] = scale_ * mean[i] / products.compute_norm(used_[i]);
    return shares;
  }

 private:
  // Returns the mean of the tangent vectors at `mean` that point to the unit vectors.
  std::vector<double> compute_step(const std::vector<double>& mean) const {
    std::vector<double> step(mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double cosine =
          std::clamp(std::inner_product(mean.begin(), mean.end(), cosines_[i].begin(), 0.0), -1.0, 1.0);
      const double angle = std::acos(cosine);
      if (angle < tolerance_ || std::sin(angle) == 0) continue;
      const double factor = angle / std::sin(angle) / static_cast<double>(mean.size());
      for (std::size_t j = 0; j < mean.size(); ++j) step[j] -= factor * cosine * mean[j];
      step[i] += factor;
    }
    return step;
  }

  double compute_norm(const std::vector<double>& shares) const {
    double sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i)
      sum += shares[i] * std::inner_product(shares.begin(), shares.end(), cosines_[i].begin(), 0.0);
    return std::sqrt(std::max(sum, 0.0));
  }

  static void scale(std::vector<double>& shares, double factor) {
    for (double& share : shares) share *= factor;
  }

  double tolerance_;
  double scale_ = 0;               // the mean norm of all inputs
  std::vector<std::size_t> used_;  // inputs that are not zeros, next to the others
  std::vector<std::vector<double>> cosines_;
};

std::vector<double> compute_karcher_shares(const ParameterValues& values, const InnerProducts* products) {
  return KarcherMean(*products, values.get("tol")).compute_shares(*products, values.get("max_iter"));
}

std::string find_della_fault(const ParameterValues& values) {
  for (std::size_t i = 0; i < values.models(); ++i) {
    const double density = values.get("density", i);
    const double epsilon = values.get("epsilon", i);
    if (density < 1 && (density - epsilon <= 0 || density + epsilon >= 1))
      return fmt::format(
          "density - epsilon and density + epsilon must be between 0 and 1; found density {}, epsilon {}", density,
          epsilon);
  }
  return {};
}

Products choose_whole_products(const ParameterValues&) { return Products::whole; }

constexpr MergeMethod kMethods[] = {
    {.name = "linear",
     .description = "the mean, or a weighted sum",
     .parameters = kLinear,
     .shares = compute_linear_shares},
    {.name = "slerp",
     .description = "two models, along the arc from one to the other",
     .base = Base::first,
     .least = 2,
     .most = 2,
     .parameters = kSlerp,
     .products = choose_whole_products,
     .shares = compute_slerp_shares},
    {.name = "nuslerp",
     .description = "the same, by weights; of the differences from a base if there is one",
     .base = Base::optional,
     .least = 2,
     .most = 2,
     .parameters = kNuslerp,
     .products = choose_nuslerp_products,
     .shares = compute_nuslerp_shares},
    {.name = "karcher",
     .description = "the mean direction of several models, on the sphere",
     .least = 2,
     .parameters = kKarcher,
     .products = choose_whole_products,
     .shares = compute_karcher_shares},
    {.name = "model_stock",
     .description = "towards the mean, as far as the models agree",
     .base = Base::required,
     .least = 2,
     .parameters = kModelStock,
     .products = choose_stock_products,
     .shares = compute_stock_shares},
    {.name = "task_arithmetic",
     .short_name = "task",
     .description = "the base plus a weighted sum of the differences from it",
     .base = Base::required,
     .parameters = kTask,
     .shares = compute_task_shares},
    {.name = "ties",
     .description = "the same, of the largest differences, where the models agree on the sign",
     .base = Base::required,
     .parameters = kTies,
     .make_pruning = make_keep_largest_pruning,
     .elects_signs = true},
    {.name = "dare_linear",
     .short_name = "dare",
     .description = "task_arithmetic with differences that are dropped at random",
     .base = Base::required,
     .parameters = kDare,
     .make_pruning = make_drop_at_random_pruning},
    {.name = "dare_ties",
     .description = "the same, where the models agree on the sign",
     .base = Base::required,
     .parameters = kDare,
     .make_pruning = make_drop_at_random_pruning,
     .elects_signs = true},
    {.name = "della_linear",
     .description = "task_arithmetic with small differences dropped more often than large ones",
     .base = Base::required,
     .parameters = kDella,
     .fault = find_della_fault,
     .make_pruning = make_drop_by_magnitude_pruning},
    {.name = "della",
     .description = "the same, where the models agree on the sign",
     .base = Base::required,
     .parameters = kDella,
     .fault = find_della_fault,
     .make_pruning = make_drop_by_magnitude_pruning,
     .elects_signs = true},
    {.name = "passthrough",
     .description = "the tensors of one model, or of another one for each slice",
     .most = 1,
     .parameters = kPassthrough,
     .shares = compute_passthrough_shares},
};

}  // namespace

std::span<const MergeMethod> get_merge_methods() { return kMethods; }

const MergeMethod& find_merge_method(std::string_view name) {
  const std::string lower = to_lower_ascii(name);
  std::string names;
  for (const MergeMethod& method : kMethods) {
    if (lower == method.name || (!method.short_name.empty() && lower == method.short_name)) return method;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  }
  throw Error(ErrorKind::bad_argument,
              fmt::format("merge_method: expected one of {}; found \"{}\"", names, shorten(name, 60)));
}

ParameterValues::ParameterValues(std::span<const MergeParameter> parameters, std::size_t models)
    : parameters_(parameters), models_(models) {
  for (const MergeParameter& parameter : parameters) values_.insert(values_.end(), models, parameter.usual);
}

std::optional<std::size_t> ParameterValues::find(std::string_view name) const {
  const auto found = std::ranges::find(parameters_, name, &MergeParameter::name);
  if (found == parameters_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters_.begin());
}

double ParameterValues::get(std::string_view name, std::size_t model) const {
  const auto parameter = find(name);
  if (!parameter) throw Error(ErrorKind::internal, fmt::format("the method has no parameter {}", name));
  return values_[*parameter * models_ + model];
}

void ParameterValues::set(std::size_t parameter, std::size_t model, double value) {
  values_[parameter * models_ + model] = value;
}

double InnerProducts::compute_norm(std::size_t i) const { return std::sqrt(at(i, i)); }

bool InnerProducts::are_finite() const {
  return std::ranges::all_of(products_, [](double product) { return std::isfinite(product); });
}

void InnerProducts::add(const InnerProducts& other) {
  for (std::size_t i = 0; i < products_.size(); ++i) products_[i] += other.products_[i];
}

}  // namespace poise
