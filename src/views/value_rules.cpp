#include "views/value_rules.hpp"

#include <fmt/format.h>

#include "numeric/scan.hpp"
#include "views/layout_type.hpp"

namespace poise {

ValueRules value_rules(const Tensor& tensor, const Part& part) {
  const LayoutType& layout = layout_type(tensor.layout);
  return layout.value_rules != nullptr ? layout.value_rules(tensor, part) : ValueRules{part.dtype};
}

std::optional<CodeFormat> code_format(ValueRules::ByteCodes codes) {
  if (codes == ValueRules::ByteCodes::any) return std::nullopt;
  return CodeFormat{4, codes == ValueRules::ByteCodes::unsigned4, false};
}

std::string bad_element(DType dtype, std::uint64_t element) {
  return fmt::format("element {} is {}", element, bad_value_name(dtype));
}

std::optional<std::string> problem_with_last(ValueRules::LastHalf half, std::byte last) {
  const unsigned high = std::to_integer<unsigned>(last) >> 4U;
  if (half == ValueRules::LastHalf::used || high == 0) return std::nullopt;
  if (half == ValueRules::LastHalf::unused) return "the unused half of the last byte is not zero";
  return fmt::format("the high half of the last byte holds no code: expected 0, found {}", high);
}

}  // namespace poise
