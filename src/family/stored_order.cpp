#include "family/stored_order.hpp"

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"

namespace poise {

std::optional<DecoderPlan> known_plan(const Model& model) {
  const std::string& type = model.card.model_type;
  if (!model.config || (!type.empty() && find_family(type) == nullptr)) return std::nullopt;
  const Family& family = family_of(model);
  const ConfigView view = config_view(model);
  if (!check_config(view, family).empty()) return std::nullopt;
  try {
    return family.plan(view);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;
  }
}

bool stores_in_out(const DecoderPlan& plan, std::string_view matrix) {
  if (matrix == plan.output) return plan.output_transposed;
  return plan.transposed && matrix.starts_with(plan.layer_names);
}

}  // namespace poise
