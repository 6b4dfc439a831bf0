// Chooses a type for each matrix of a conversion, so that the output fits ConvertOptions::budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/convert.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "bytes/function_ref.hpp"
#include "cluster/communicator.hpp"
#include "formats/format.hpp"
#include "ops/transform/transform.hpp"
#include "views/affine.hpp"

namespace poise {

struct BudgetedTypes {
  MatrixTypes types;
  BudgetChoice choice;
};

// Chooses the types by errors that samples of the tensors show. std::nullopt if there is no budget, or the output fits
// it with the types that the model has. `plan_file` returns the sizes of the file that a result of transform() becomes.
// If `ranks` is not null, the ranks divide the passes of SizeBudget::divergence, and all get the same types. Reports
// progress to options.write. Throws bad_argument for a budget that is too small, which names the least one, or that the
// format cannot follow; what transform(), `plan_file`, reading and SizeBudget::divergence throw; cancelled.
std::optional<BudgetedTypes> choose_types(const Model& model, const Format& target, const ConvertOptions& options,
                                          const MergedTypes& merged, FunctionRef<FilePlan(Transformed&)> plan_file,
                                          Communicator* ranks = nullptr);

// Measures how much a matrix loses as blocks of each type, on a sample of its rows.

struct TypeCandidate {
  std::optional<StoredType> type;  // std::nullopt: the matrix keeps its type
  std::uint64_t bytes = 0;         // of its elements
  double error = 0;                // the sum of (x - decoded)^2 over that of x^2, with weights of the columns
};

// Returns the types for the rows of a matrix that are smaller than `most_bytes`, with their errors. They are block
// types and, if the elements take more than 16 bits, f16 and bf16 (unless `holds_bf16` is false). Types that need an
// importance matrix count only if `has_importance`. Types whose numbers would not be finite are left out; so are all of
// them if an element is not finite. `importance`: as in quantize_to_blocks(). Throws what reading throws. Requires:
// has_float_elements(matrix), at least one dimension.
std::vector<TypeCandidate> measure_types(const Tensor& matrix, const Importance& importance, std::uint64_t most_bytes,
                                         bool holds_bf16, bool has_importance);

// Returns the bytes of the largest sample, for progress.
std::uint64_t count_sample_bytes(const Tensor& matrix);

// Holds a matrix whose type the budget chooses, or a layer's matrices of experts with the same name apart from their
// numbers: GGUF stores these together, in one type.
struct BudgetMatrix {
  std::vector<std::string> names;
  std::string own_type;
  std::vector<TypeCandidate> candidates;  // bytes of all of them, and the means of their errors
  std::string role = {};                  // the name with a "*" for each number: "model.layers.*.mlp.up_proj.weight"
  double weight = 1;                      // of its errors
};

// Joins matrices of experts, at the place of the first one. Only the types that all of them can have remain.
std::vector<BudgetMatrix> join_experts(std::vector<BudgetMatrix> matrices);

// Sets roles and weights. Each layer adds to a stream of numbers twice, by attention and by its feed-forward network,
// so that errors in one of n layers reach a part of the stream: about 1 / (2 n). Embedding and output matrix reach all
// of it. Of the experts of a layer, each meets a part of the tokens.
void set_weights(std::vector<BudgetMatrix>& matrices);

// Returns the candidate in which a matrix is stored to measure the divergence that its errors cause. It has the error
// next to kProbedError (by ratio) among those with an error; std::nullopt if no candidate has one. The divergence grows
// as the square of small changes: a larger error would leave that range, and a smaller one would be lost in rounding.
inline constexpr double kProbedError = 0.02;
std::optional<std::size_t> find_probe(const BudgetMatrix& matrix);

// Sets the weights to the divergence for a unit of error. `divergences` has those of find_probe(); 0 without one.
// Where a divergence is 0, as of experts that no token has chosen, the weight is the least one of the others, or
// kLeastWeight without others.
inline constexpr double kLeastWeight = 1e-9;
void set_weights(std::vector<BudgetMatrix>& matrices, std::span<const double> divergences);

// Chooses one candidate for each item, so that the bytes of all fit a budget and the sum of their errors is small.
//
// For one item, only the candidates on the lower convex hull of (bytes, error) count: each step to the next one lowers
// the error by less for a byte than the step before. Steps of all items are made in the order of that gain for a byte,
// and a step that does not fit is left out together with the later ones of its item.
//
// The sum of errors is least for its own bytes while every step fits (it minimizes error + factor * bytes for the
// factor of the last step). For other budgets it is at most the gain of the first step left out above the least. A
// larger budget never has a larger sum: where the two choices first differ, the step that only the larger budget has
// room for gains more than all later steps that the smaller one makes in fewer bytes.

struct SizeCandidate {
  std::uint64_t bytes = 0;
  double error = 0;  // finite, not negative
};

class SizeSelection {
 public:
  // Requires: each item has a candidate.
  explicit SizeSelection(const std::vector<std::vector<SizeCandidate>>& items);

  // Returns the number of a candidate for each item; the smallest ones if they do not fit. Equal gains go to the first
  // item.
  std::vector<std::size_t> select(std::uint64_t budget) const;

  std::uint64_t least_bytes() const { return least_bytes_; }  // of the smallest candidates; 2^64 - 1 if larger

 private:
  struct Step {
    std::size_t item;
    std::size_t from;  // candidates
    std::size_t to;
    std::uint64_t bytes;  // more than before
    double gain;          // in error for each of them
  };

  std::vector<std::size_t> first_;  // the smallest candidate of each item
  std::uint64_t least_bytes_ = 0;
  std::vector<Step> steps_;
};

}  // namespace poise
