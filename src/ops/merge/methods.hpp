// Declares the parts of a merge: the numbers of its inputs, methods and their parameters, the settings of a recipe, and
// the merged model. methods.cpp has the table of methods.
//
// There are two kinds of methods. The first computes a sum of the inputs, each multiplied by a share, which may follow
// from their inner products. The second changes each model's differences from the base before it adds them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/blob.hpp>
#include <poise/merge.hpp>
#include <poise/tensor.hpp>

#include "ops/lora.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// Holds tensors of one shape as float32 numbers. With a base, the numbers are differences from it.
class MergeInputs {
 public:
  // Requires: floating-point elements, and equal shapes.
  MergeInputs(std::vector<Tensor> tensors, const Tensor* base);

  std::size_t size() const { return numbers_.size(); }
  std::uint64_t elements() const { return elements_; }
  std::uint64_t row_elements() const { return row_elements_; }  // the size of the last axis
  bool has_base() const { return base_ != nullptr; }
  bool seekable() const { return seekable_; }
  std::vector<Part> parts() const;  // the parts of all tensors

  // Requires: has_base().
  void read_base(std::uint64_t first, std::span<float> out) const;
  // Reads the numbers of the i-th tensor, minus `base`, which is from read_base(); empty: there is no base.
  void read(std::size_t i, std::uint64_t first, std::span<const float> base, std::span<float> out) const;

  static constexpr std::uint64_t kChunk = 1 << 16;  // elements of a chunk; a multiple of kBlockSize

  // Calls visit(local, first, count) for the elements in blocks of at most kBlockSize, in order within chunks of
  // `chunk` elements. Chunks run on all threads if the inputs are seekable, else in order, too.
  template <typename Local, typename Visit>
  void scan(oneapi::tbb::enumerable_thread_specific<Local>& locals, const Visit& visit,
            std::uint64_t chunk = kChunk) const {
    const auto visit_chunk = [&](Local& local, std::uint64_t begin) {
      const std::uint64_t end = std::min(begin + chunk, elements_);
      for (std::uint64_t first = begin; first < end; first += kBlockSize)
        visit(local, first, static_cast<std::size_t>(std::min<std::uint64_t>(kBlockSize, end - first)));
    };
    const std::uint64_t chunks = elements_ / chunk + (elements_ % chunk != 0 ? 1 : 0);
    if (!seekable_) {
      for (std::uint64_t i = 0; i < chunks; ++i) visit_chunk(locals.local(), i * chunk);
      return;
    }
    // The task is isolated: a thread that waits here must not take other work that may wait for this scan.
    oneapi::tbb::this_task_arena::isolate([&] {
      oneapi::tbb::parallel_for(std::uint64_t{0}, chunks,
                                [&](std::uint64_t i) { visit_chunk(locals.local(), i * chunk); });
    });
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<BlobPtr> numbers_;  // float32
  BlobPtr base_;                  // null: none
  std::uint64_t elements_;
  std::uint64_t row_elements_;
  bool seekable_;
};

struct MergeParameter {
  enum class Kind : std::uint8_t { number, flag, count };

  std::string_view name;
  Kind kind = Kind::number;
  double usual = 0;  // the value without a setting
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
  std::vector<double> values_;  // one for each parameter and model
};

// Holds the inner products of the inputs, or of their differences from the base, as float64.
class InnerProducts {
 public:
  explicit InnerProducts(std::size_t count) : count_(count), products_(count * (count + 1) / 2) {}

  std::size_t size() const { return count_; }
  double at(std::size_t i, std::size_t j) const { return products_[compute_index(i, j)]; }
  double& at(std::size_t i, std::size_t j) { return products_[compute_index(i, j)]; }
  double compute_norm(std::size_t i) const;
  bool are_finite() const;
  void add(const InnerProducts& other);

 private:
  static std::size_t compute_index(std::size_t i, std::size_t j) {
    return i < j ? j * (j + 1) / 2 + i : i * (i + 1) / 2 + j;
  }

  std::size_t count_;
  std::vector<double> products_;  // the lower triangle
};

// Sets some of a model's differences from the base to zero, and may scale the others.
class Pruning {
 public:
  virtual ~Pruning() = default;
  // Changes the differences of the elements from `first` on: whole rows if needs_whole_rows().
  virtual void prune(std::uint64_t first, std::span<float> differences) const = 0;
  virtual bool needs_whole_rows() const { return false; }
};

// Describes the differences to prune: those of the input with the index `model`.
struct PrunedInput {
  const MergeInputs& inputs;
  std::size_t model;
  const ParameterValues& values;
  std::uint64_t key;  // the key of its random numbers
};

enum class Products : std::uint8_t { none, whole, by_rows };

struct MergeMethod {
  enum class Base : std::uint8_t { unused, optional, required, first };  // first: the base is the model at t = 0

  std::string_view name;
  std::string_view short_name = {};
  std::string_view description;
  Base base = Base::unused;
  std::size_t least = 1;  // models besides the base; with Base::first, including the base
  std::size_t most = SIZE_MAX;
  std::span<const MergeParameter> parameters = {};
  // Returns why values do not fit each other, although each is in its range; an empty text if they fit. Null: they
  // always fit.
  std::string (*fault)(const ParameterValues& values) = nullptr;

  // Returns which inner products shares() needs. Null: none.
  Products (*products)(const ParameterValues& values) = nullptr;
  // Returns the factor of each input in the sum; with a base, the factor of its difference from the base. Null: the
  // method is of the second kind. Throws bad_argument or unsupported if a divisor is 0.
  std::vector<double> (*shares)(const ParameterValues& values, const InnerProducts* products) = nullptr;

  // Returns the pruning of an input, and may read the input for that; null if the values leave the input unchanged. A
  // null function means that the method does not prune.
  std::unique_ptr<const Pruning> (*make_pruning)(const PrunedInput& input) = nullptr;
  bool elects_signs = false;
};

std::span<const MergeMethod> get_merge_methods();

// Returns the method with that name, in its short or long form, in upper or lower case. Throws bad_argument, listing
// all names, if there is none.
const MergeMethod& find_merge_method(std::string_view name);

// Describes the merge of one tensor.
struct TensorMerge {
  std::string name;
  std::vector<Tensor> inputs;       // equal shapes, with floating-point elements
  std::optional<Tensor> base;       // same shape, with floating-point elements
  ParameterValues values;           // checked by resolve_settings()
  std::vector<std::uint64_t> keys;  // the key of the random numbers of each input
};

// Returns float32 numbers, computed when they are read. Reading throws unsupported, naming the tensor, for a number
// that is infinite although no number of the inputs is. Throws what MergeMethod::shares() throws; if shares() needs
// inner products, reading throws it.
BlobPtr make_merged_blob(const MergeMethod& method, TensorMerge merge);

// Each function makes the result of one kind of methods: make_sum_blob() of those with MergeMethod::shares,
// make_task_blob() of the others.
BlobPtr make_sum_blob(const MergeMethod& method, MergeInputs inputs, ParameterValues values);
BlobPtr make_task_blob(const MergeMethod& method, MergeInputs inputs, ParameterValues values,
                       std::vector<std::uint64_t> keys);

// Each function makes the pruning of a method. Rows of methods.cpp refer to these functions.
std::unique_ptr<const Pruning> make_keep_largest_pruning(const PrunedInput& input);       // TIES
std::unique_ptr<const Pruning> make_drop_at_random_pruning(const PrunedInput& input);     // DARE
std::unique_ptr<const Pruning> make_drop_by_magnitude_pruning(const PrunedInput& input);  // DELLA

// Returns the key of the random numbers for a tensor of a model: FNV-1a, of 64 bits, over the seed and the model's
// number as 8 bytes each, the lowest first, and the tensor's name.
std::uint64_t make_random_key(std::uint64_t seed, std::uint64_t model, std::string_view tensor);
// Returns the element's number in [0, 1): the element-th output of SplitMix64 that begins with the key.
double make_random_number(std::uint64_t key, std::uint64_t element);

// Throws bad_argument: "FILE: PROBLEM", without a file if the recipe was not read from one.
[[noreturn]] void refuse_recipe(const MergeRecipe& recipe, const std::string& problem);

// Throws bad_argument for settings that the method does not have, numbers outside their ranges, empty gradients, slices
// with other numbers of models than the method merges, a base that is missing or does not fit the method, and a recipe
// without models.
void check_recipe(const MergeRecipe& recipe, const MergeMethod& method);

// Returns true if the paths name the same model: by their text, or because they lead to the same file or directory.
bool is_same_model(const std::filesystem::path& a, const std::filesystem::path& b);
// Returns the recipe with one spelling for the path of each model: the first one.
MergeRecipe unify_paths(MergeRecipe recipe);

// Returns the sources of a slice that count as inputs: all but the base. With Base::unused, the base counts, too;
// with Base::first it is the first input.
std::vector<const MergeSource*> list_inputs(const MergeRecipe& recipe, const MergeSlice& slice,
                                            const MergeMethod& method);

// Returns the values for a tensor. `position` is the place of its layer in the slice, from 0 to 1. Throws bad_argument
// if the values do not fit each other. Requires: check_recipe().
ParameterValues resolve_settings(const MergeRecipe& recipe, const MergeMethod& method, const MergeSlice& slice,
                                 std::string_view tensor, double position);

struct MergedModels {
  MergedModel merged;  // its types are those of the base's tensors, or else of the first source's
  std::vector<std::shared_ptr<const Model>> inputs;
  std::unordered_set<const Tensor*> used;  // tensors of the inputs that are merged
};

// Reads headers alone, and with tied embeddings what resolve_tied_output() reads. Throws what merge() throws.
MergedModels merge_models(const MergeRecipe& recipe, const ReadOptions& options);

}  // namespace poise
