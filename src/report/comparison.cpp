#include "report/tensor_data.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <poise/diff.hpp>
#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "numeric/summary_kernels.hpp"
#include "ops/compare_numbers.hpp"
#include "ops/heat_map.hpp"
#include "report/model_data.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostFields = 300;
constexpr std::size_t kLongestText = 300;
constexpr std::size_t kMostDifferences = 20000;

// Sums up the squared errors of one tensor in the cells of a heat map, and finds the place of the largest error.
class ErrorMap {
 public:
  ErrorMap(const Tensor& tensor, std::size_t side)
      : grid_(tensor.shape, side), sums_(grid_.make_sums(0, tensor.elements())) {}

  void add(std::uint64_t first, std::span<const float> a, std::span<const float> b) {
    errors_.resize(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      errors_[i] = a[i] == b[i] ? 0 : b[i] - a[i];
      if (const float size = std::abs(errors_[i]); size > worst_) {
        worst_ = size;
        worst_place_ = first + i;
      }
    }
    if (grid_.empty()) return;
    grid_.add(
        first, errors_.size(),
        [&](std::size_t at, std::size_t length) { return sum_squares(std::span(errors_).subspan(at, length)); }, sums_);
  }

  HeatMap make_map() const { return grid_.empty() ? HeatMap() : grid_.make_map(sums_.squares); }
  std::uint64_t worst_place() const { return worst_place_; }

 private:
  CellGrid grid_;
  CellSums sums_;
  std::vector<float> errors_;
  float worst_ = 0;
  std::uint64_t worst_place_ = 0;  // the first element with the largest error
};

std::string_view describe_kind(TensorDifference::What what) {
  switch (what) {
    case TensorDifference::What::only_in_a: return "missing";
    case TensorDifference::What::only_in_b: return "new";
    case TensorDifference::What::shape: return "shape";
    case TensorDifference::What::type: return "type";
    case TensorDifference::What::values: return "values";
  }
  return {};
}

// Returns [row, column, ...] of an element.
Value::Array compute_indices(const Shape& shape, std::uint64_t element) {
  Value::Array place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = element % shape[i];
    element /= shape[i];
  }
  return place;
}

// Returns a ratio for the script: null if it is infinite (there is no error), "zero" if the original has only zeros,
// "-" if a number is not finite.
Value describe_ratio(double decibels) {
  if (decibels == -std::numeric_limits<double>::infinity()) return "zero";
  return std::isnan(decibels) ? Value("-") : shorten_number(decibels);
}

class Comparison {
 public:
  Comparison(const Model& original, const Model& model, const PageTensors& tensors, TensorColumns& columns)
      : original_(original), model_(model), tensors_(tensors), columns_(columns) {}

  Value compare(const Progress& progress) {
    DiffOptions options;
    options.verify = false;  // verify() has read the model already, and the page shows its faults
    options.progress = progress;
    const DiffReport report = diff_observed(original_, model_, options, [this](const Tensor& tensor) -> SeeFloats {
      ErrorMap& errors = make_error_map(tensor);
      return [&errors](std::uint64_t first, std::span<const float> a, std::span<const float> b) {
        errors.add(first, a, b);
      };
    });
    Value::Array rows;
    for (const TensorDifference& difference : report.tensors) {
      if (rows.size() < kMostDifferences) rows.push_back(describe(difference));
    }
    columns_.add_differences(std::move(rows));
    Value::Array fields;
    for (const FieldDifference& field : report.fields) {
      if (fields.size() == kMostFields) break;
      fields.push_back(Value::Array{shorten(field.field, kLongestText), shorten(field.a, kLongestText),
                                    shorten(field.b, kLongestText)});
    }
    return Attributes{{"title", make_report_title(original_)},
                      {"format", original_.origin.format},
                      {"size", original_.origin.size},
                      {"tensors", original_.size()},
                      {"equal", report.equal_tensors},
                      {"equal_as_numbers", report.equal_as_numbers},
                      {"different", report.tensors.size()},
                      {"more_fields", report.fields.size() - fields.size()},
                      {"fields", std::move(fields)}};
  }

 private:
  // Makes the map of a tensor that is about to be compared. Several threads call this.
  ErrorMap& make_error_map(const Tensor& tensor) {
    const Tensor* const own = model_.find(tensor.name);
    auto errors = std::make_unique<ErrorMap>(tensor, own == nullptr ? 0 : tensors_.find_side(*own));
    const std::lock_guard lock(mutex_);
    return *(errors_[tensor.name] = std::move(errors));
  }

  Value describe(const TensorDifference& difference) {
    Value::Array row = {shorten(difference.name, kLongestText), describe_kind(difference.what),
                        shorten(difference.a, kLongestText), shorten(difference.b, kLongestText)};
    if (!difference.values) return row;
    const TensorDifference::Values& values = *difference.values;
    Value map;
    Value place;
    if (const auto found = errors_.find(difference.name); found != errors_.end()) {
      const Tensor* const own = model_.find(difference.name);
      map = columns_.add_map(found->second->make_map(), values.rms);
      if (own != nullptr) place = compute_indices(own->shape, found->second->worst_place());
    }
    row.push_back(Attributes{{"different", values.different},
                             {"max", shorten_number(values.max_absolute)},
                             {"rms", shorten_number(values.rms)},
                             {"relative", shorten_number(values.max_relative)},
                             {"snr", describe_ratio(values.signal_to_noise_db)},
                             {"map", std::move(map)},
                             {"place", std::move(place)}});
    return row;
  }

  const Model& original_;
  const Model& model_;
  const PageTensors& tensors_;
  TensorColumns& columns_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<ErrorMap>> errors_;  // the key is the tensor's name
};

}  // namespace

Value compare_with(const Model& original, const Model& model, const PageTensors& tensors, const Progress& progress,
                   TensorColumns& columns) {
  try {
    return Comparison(original, model, tensors, columns).compare(progress);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::internal) throw;
    return Attributes{{"title", make_report_title(original)}, {"problem", shorten(error.message(), kLongestText)}};
  }
}

}  // namespace poise
