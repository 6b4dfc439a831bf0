// Numbers of tokens that are multiplied in different ways.
#pragma once

#include <cstddef>

#include "kernels/product.hpp"

namespace poise {

// Many for any matrix and processor.
inline constexpr std::size_t kMany = KernelInput::kTokensOfPanels + 1;

// Returns a number of tokens among which each gets the same bits as among any other number.
inline std::size_t equivalent_count(const StoredRows& matrix, std::size_t tokens) {
  const KernelInput input(matrix, tokens);
  if (input.is_few()) return 1;
  return input.form() == KernelInput::Form::panels ? KernelInput::kFewTokens + 1 : kMany;
}

}  // namespace poise
