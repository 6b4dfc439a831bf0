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

// Chooses the types by errors measured on samples of the tensors. Returns std::nullopt if there is no budget, or if the
// output fits it with the types that the model has. `plan_file` returns the sizes of the file that a result of
// transform() becomes. If `ranks` is not null, the ranks divide the passes of SizeBudget::divergence, and all get the
// same types. Reports progress to options.write. Throws bad_argument for a budget that is invalid or too small (naming
// the smallest possible one), and for a format without block types. Also throws what transform(), `plan_file`, reading
// and SizeBudget::divergence throw, and cancelled.
std::optional<BudgetedTypes> choose_types(const Model& model, const Format& target, const ConvertOptions& options,
                                          const MergedTypes& merged, FunctionRef<FilePlan(Transformed&)> plan_file,
                                          Communicator* ranks = nullptr);

// Describes a type that a matrix could have, with its error on a sample of the rows.
struct TypeCandidate {
  std::optional<StoredType> type;  // std::nullopt: the matrix keeps its type
  std::uint64_t bytes = 0;         // the size of the matrix in this type
  double error = 0;                // sum(w (x - decoded)^2) / sum(w x^2); w is the importance of x's column, or 1
};

// Returns the types in which the matrix has less than `most_bytes` bytes, with their errors: block types, f16, and bf16
// if `holds_bf16`. Leaves out types that need an importance matrix unless `has_importance`, and types whose numbers
// would not be finite. Returns no types if an element of the sample is not finite. `importance`: as in
// quantize_to_blocks(). Throws what reading throws. Requires: has_float_elements(matrix), at least one dimension.
std::vector<TypeCandidate> measure_types(const Tensor& matrix, const Importance& importance, std::uint64_t most_bytes,
                                         bool holds_bf16, bool has_importance);

// Returns the size in bytes of the sample that measure_types() reads, for the progress.
std::uint64_t count_sample_bytes(const Tensor& matrix);

// Holds a matrix whose type the budget chooses, or the matrices of a layer's experts whose names differ only in the
// number of the expert: GGUF stores these together, in one type.
struct BudgetMatrix {
  std::vector<std::string> names;
  std::string own_type;
  std::vector<TypeCandidate> candidates;  // with the bytes of all matrices in `names`, and the mean of their errors
  std::string role = {};                  // the name with a "*" for each number: "model.layers.*.mlp.up_proj.weight"
  double weight = 1;                      // the factor of the error in the sum over all matrices
};

// Joins matrices of experts, at the place of the first one. Only the types that all of them can have remain.
std::vector<BudgetMatrix> join_experts(std::vector<BudgetMatrix> matrices);

// Sets roles and weights. The weight of a matrix in one of n layers is 1 / (2 n): each layer adds to the residual
// stream twice, by attention and by its feed-forward network, so that the errors of a matrix reach about this part of
// the stream. The weight of the embedding and of the output matrix is 1, because their errors reach all of the stream.
// The experts of a layer together have the weight of one matrix, because each sees only a part of the tokens.
void set_weights(std::vector<BudgetMatrix>& matrices);

// This is the best relative squared error for measuring a divergence. The divergence is proportional to small squared
// errors; it is not to larger ones, and rounding would hide the divergence of smaller ones.
inline constexpr double kProbedError = 0.02;

// Returns the index of the matrix's probe: the candidate whose error is closest to kProbedError, by ratio. Returns
// std::nullopt if no candidate has an error. choose_types() measures the divergence of a model in which the matrix has
// the type of its probe.
std::optional<std::size_t> choose_probe(const BudgetMatrix& matrix);

inline constexpr double kLeastWeight = 1e-9;

// Sets each weight to the divergence of the matrix's probe, divided by the error of the probe. `divergences` has 0 for
// a matrix without a probe. A divergence of 0, as for experts that no token has chosen, gives the smallest weight of
// the other matrices, or kLeastWeight if all divergences are 0.
void set_weights(std::vector<BudgetMatrix>& matrices, std::span<const double> divergences);

struct SizeCandidate {
  std::uint64_t bytes = 0;
  double error = 0;  // finite, not negative
};

// Chooses one candidate for each item, so that the bytes of all fit a budget and the sum of their errors is small.
//
// For one item, only the candidates on the lower convex hull of (bytes, error) count. A step leads from one of them to
// the next larger one. The gain of a step is the error that it removes for each byte; no step of an item has a larger
// gain than the step before. select() makes the steps of all items in order of decreasing gain. It leaves out a step
// that does not fit, and the later steps of its item.
//
// While every step fits, no choice of the same size has a smaller sum of errors, because the steps minimize error +
// gain * bytes for the gain of the last step. After the first step that does not fit, the sum exceeds the least
// possible one by at most the error that this step would remove. A larger budget never has a larger sum: the first step
// that only the larger budget has room for removes more error than all later steps of the smaller budget, because these
// have fewer bytes together, and no larger gains.
class SizeSelection {
 public:
  // Requires: each item has a candidate.
  explicit SizeSelection(const std::vector<std::vector<SizeCandidate>>& items);

  // Returns the index of a candidate for each item; the smallest candidates if even these do not fit. Of equal gains,
  // the first item's step comes first.
  std::vector<std::size_t> select(std::uint64_t budget) const;

  std::uint64_t least_bytes() const { return least_bytes_; }  // of the smallest candidates; at most 2^64 - 1

 private:
  struct Step {
    std::size_t item;
    std::size_t from;  // the indices of two candidates
    std::size_t to;
    std::uint64_t bytes;  // that the step adds
    double gain;          // the error that each of these bytes removes
  };

  std::vector<std::size_t> first_;  // the smallest candidate of each item
  std::uint64_t least_bytes_ = 0;
  std::vector<Step> steps_;
};

}  // namespace poise
