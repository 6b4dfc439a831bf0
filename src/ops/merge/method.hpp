// MergeMethod: one way to make a tensor from several. methods.cpp has the table.
//
// A method is one of two kinds. The result of the first is a sum of its inputs, each times a share, which may follow
// from their inner products. The second changes each model's differences from the base before it adds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

#include "ops/merge/inputs.hpp"

namespace poise {

struct MergeParameter {
  enum class Kind : std::uint8_t { number, flag, count };

  std::string_view name;
  Kind kind = Kind::number;
  double usual = 0;  // without a setting
  double least = 0;
  double most = 0;
  bool of_model = false;      // each model has its own value
  std::string_view why = {};  // why the range is narrower than mergekit's
};

// Holds the values of a method's parameters for one tensor.
class ParameterValues {
 public:
  ParameterValues(std::span<const MergeParameter> parameters, std::size_t models);

  std::size_t models() const { return models_; }
  // Requires: the method has the parameter.
  double get(std::string_view name, std::size_t model = 0) const;
  bool has(std::string_view name) const { return find(name).has_value(); }
  void set(std::size_t parameter, std::size_t model, double value);

 private:
  std::optional<std::size_t> find(std::string_view name) const;

  std::span<const MergeParameter> parameters_;
  std::size_t models_;
  std::vector<double> values_;  // for each parameter, of each model
};

// Holds the inner products of the inputs, or of their differences from the base, as float64.
class InnerProducts {
 public:
  explicit InnerProducts(std::size_t count) : count_(count), products_(count * (count + 1) / 2) {}

  std::size_t size() const { return count_; }
  double at(std::size_t i, std::size_t j) const { return products_[index(i, j)]; }
  double& at(std::size_t i, std::size_t j) { return products_[index(i, j)]; }
  double compute_norm(std::size_t i) const;
  void add(const InnerProducts& other);

 private:
  static std::size_t index(std::size_t i, std::size_t j) { return i < j ? j * (j + 1) / 2 + i : i * (i + 1) / 2 + j; }

  std::size_t count_;
  std::vector<double> products_;  // the lower triangle
};

// Sets some of a model's differences from the base to zero, and scales the others.
class Pruning {
 public:
  virtual ~Pruning() = default;
  // Changes the differences of the elements from `first` on: whole rows if needs_whole_rows().
  virtual void prune(std::uint64_t first, std::span<float> differences) const = 0;
  virtual bool needs_whole_rows() const { return false; }
};

// Describes the differences that are pruned: of input `model` of `inputs`.
struct PrunedInput {
  const MergeInputs& inputs;
  std::size_t model;
  const ParameterValues& values;
  std::uint64_t key;  // of random numbers
};

enum class Products : std::uint8_t { none, whole, by_rows };

struct MergeMethod {
  enum class Base : std::uint8_t { unused, optional, required, first };  // first: it is one of the models, t = 0

  std::string_view name;
  std::string_view short_name = {};
  std::string_view description;
  Base base = Base::unused;
  std::size_t least = 1;  // models besides the base; with Base::first, it is one of them
  std::size_t most = SIZE_MAX;
  std::span<const MergeParameter> parameters = {};
  // Returns why values that are in their ranges do not fit each other; an empty text if they do. Null: they always do.
  std::string (*fault)(const ParameterValues& values) = nullptr;

  // Says which inner products shares() gets. Null: none.
  Products (*products)(const ParameterValues& values) = nullptr;
  // Returns each input's share of the sum; with a base, of its difference from that. Null: the second kind.
  std::vector<double> (*shares)(const ParameterValues& values, const InnerProducts* products) = nullptr;

  // Returns what prunes an input, which it may read for that; null if nothing is pruned. Null function: nothing is
  // pruned.
  std::unique_ptr<const Pruning> (*make_pruning)(const PrunedInput& input) = nullptr;
  bool elects_signs = false;
};

std::span<const MergeMethod> get_merge_methods();

// Returns the method of that name, short or not, in either case. Throws bad_argument listing the names.
const MergeMethod& find_merge_method(std::string_view name);

// Describes the merge of one tensor.
struct TensorMerge {
  std::string name;
  std::vector<Tensor> inputs;       // of equal shapes, with floating-point elements
  std::optional<Tensor> base;       // the same
  ParameterValues values;           // checked
  std::vector<std::uint64_t> keys;  // of random numbers, one for each input
};

// Returns float32 numbers, computed when they are read. Reading throws unsupported, naming the tensor, for a number
// that is infinite although no number of the inputs is.
BlobPtr make_merged_blob(const MergeMethod& method, TensorMerge merge);

// Make the results of the two kinds of methods.
BlobPtr make_sum_blob(const MergeMethod& method, MergeInputs inputs, ParameterValues values);
BlobPtr make_task_blob(const MergeMethod& method, MergeInputs inputs, ParameterValues values,
                       std::vector<std::uint64_t> keys);

// Make prunings; rows of methods.cpp refer to these functions.
std::unique_ptr<const Pruning> make_largest_pruning(const PrunedInput& input);    // TIES
std::unique_ptr<const Pruning> make_random_pruning(const PrunedInput& input);     // DARE
std::unique_ptr<const Pruning> make_magnitude_pruning(const PrunedInput& input);  // DELLA

// Returns the key of the random numbers for a tensor of a model: FNV-1a, of 64 bits, over the seed and the model's
// number as 8 bytes each, the lowest first, and the tensor's name.
std::uint64_t make_random_key(std::uint64_t seed, std::uint64_t model, std::string_view tensor);
// Returns the element's number in [0, 1): the element-th output of SplitMix64 that begins with the key.
double make_random_number(std::uint64_t key, std::uint64_t element);

}  // namespace poise
