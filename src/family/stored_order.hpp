// stored_order: how a family stores matrices: [out, in] as most do, or [in, out].
#pragma once

#include <optional>
#include <string_view>

#include <poise/model.hpp>

namespace poise {

struct DecoderPlan;

// Nothing without a family, and where Family::plan() refuses the configuration.
std::optional<DecoderPlan> known_plan(const Model& model);

// True for a matrix that is stored [in, out]; by its name in the family's table.
bool stores_in_out(const DecoderPlan& plan, std::string_view matrix);

}  // namespace poise
