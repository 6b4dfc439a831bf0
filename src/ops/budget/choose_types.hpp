// Chooses a type for each matrix of a conversion, so that the output fits ConvertOptions::budget.
#pragma once

#include <optional>

#include <poise/convert.hpp>

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"
#include "ops/transform/transform.hpp"

namespace poise {

struct BudgetedTypes {
  MatrixTypes types;
  BudgetChoice choice;
};

// Chooses the types by errors that samples of the tensors show. std::nullopt if there is no budget, or the output fits
// it with the types that the model has. `plan_file` returns the sizes of the file that a result of transform() becomes.
// Reports progress to options.write. Throws bad_argument for a budget that is too small, which names the least one, or
// that the format cannot follow; what transform(), `plan_file` and reading throw; cancelled.
std::optional<BudgetedTypes> choose_types(const Model& model, const Format& target, const ConvertOptions& options,
                                          const MergedTypes& merged, FunctionRef<FilePlan(Transformed&)> plan_file);

}  // namespace poise
