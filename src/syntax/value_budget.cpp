#include "syntax/value_budget.hpp"

namespace poise {

std::uint64_t measure_cost(const Value& value) {
  std::uint64_t cost = ValueBudget::kValueBytes;
  if (const auto* array = value.get_if<Value::Array>()) {
    for (const Value& item : *array) cost += measure_cost(item);
  } else if (const auto* map = value.get_if<Attributes>()) {
    for (const auto& [key, item] : *map) cost += ValueBudget::kKeyBytes + measure_cost(item);
  } else if (const auto* pairs = value.get_if<Value::Pairs>()) {
    for (const auto& [key, item] : *pairs) cost += ValueBudget::kKeyBytes + measure_cost(key) + measure_cost(item);
  }
  return cost;
}

}  // namespace poise
