// diff: finds the differences between two models, even of different formats.
//
//   const poise::DiffReport report = poise::diff(poise::open("a.alt"), poise::open("b.gguf"));
//   for (const auto& tensor : report.tensors) std::cout << tensor.name << ": " << tensor.a << ", " << tensor.b << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>

namespace poise {

// Describes a field of card, configuration, vocabulary or attributes that differs. `a` and `b` are its values in the
// two models, or "-" if the model lacks the field.
struct FieldDifference {
  std::string field;  // "config.hidden_size"
  std::string a;
  std::string b;
};

struct TensorDifference {
  // Names the kind of a difference. If several apply, the first in this order counts.
  enum class What : std::uint8_t {
    only_in_a,
    only_in_b,
    shape,
    type,    // the type of storage, with equal shapes; TensorDifference::values has the distance
    values,  // the numbers alone, or bytes that are not numbers
  };

  std::string name;
  What what = What::values;
  std::string a;  // "f16 [4096, 4096]", "q4_k [4096, 4096]"; "-" when absent
  std::string b;
  // Holds the distance of two tensors with equal shapes, if both hold real numbers (integers, booleans and
  // floating-point numbers), or both complex numbers. Integers are compared exactly; other numbers as float64 if a
  // tensor has float64 or complex128, else as float32.
  struct Values {
    std::uint64_t different = 0;  // number of elements that differ by more than DiffOptions::tolerance
    double max_absolute = 0;
    double rms = 0;           // root of the mean squared difference
    double max_relative = 0;  // largest |a - b| / |a| of the elements of `a` that are not zero
    // 10 log10(sum of a^2 / sum of (a - b)^2). Infinite if all elements are equal, else NaN if one is not finite.
    double signal_to_noise_db = 0;
  };
  std::optional<Values> values;
};

struct DiffReport {
  std::vector<FieldDifference> fields;
  std::vector<TensorDifference> tensors;  // ordered by name
  std::size_t equal_tensors = 0;
  // The number of equal dense tensors whose bytes differ (0.0 and -0.0, or NaNs). With DiffOptions::values it also
  // counts equal tensors of different types.
  std::size_t equal_as_numbers = 0;
  std::size_t within_tolerance = 0;  // equal tensors with numbers that differ, by at most DiffOptions::tolerance
  std::vector<Finding> warnings;     // digests that could not be checked

  // Returns true if the models do not differ.
  bool same() const { return fields.empty() && tensors.empty(); }
};

struct DiffOptions {
  // Shell patterns over tensor names, as in ConvertOptions. `only` empty: all.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};
  double tolerance = 0;  // numbers are equal if they differ by at most this
  // Compares names, shapes and numbers of tensors alone: metadata, attributes and types do not count.
  bool values = false;
  bool verify = true;  // checks the files' digests of the compared bytes
  Progress progress = {};
};

// Compares two models. Tensors are equal when name, shape, layout, element type and elements are. Layouts are compared
// by meaning, not by their attributes and index types. NaN equals NaN. Maps are equal when they have equal values under
// the same keys, in any order. For two sparse tensors only stored elements are compared. Throws invalid_file, naming
// the tensor, for a wrong digest; bad_argument for a pattern that matches no tensor, and for a tolerance below 0;
// cancelled; and what reading the blobs throws.
DiffReport diff(const Model& a, const Model& b, const DiffOptions& options);
// Compares all tensors, without tolerance.
inline DiffReport diff(const Model& a, const Model& b, const Progress& progress = {}, bool verify = true) {
  return diff(a, b, DiffOptions{.verify = verify, .progress = progress});
}

}  // namespace poise
