#include "formats/alt/layout.hpp"

namespace poise::alt {

std::optional<DType> dtype_from_code(std::int32_t code) {
  if (code < 0) return std::nullopt;
  for (int row = 0; row < static_cast<int>(DType::unknown); ++row) {
    const auto dtype = static_cast<DType>(row);
    if (poise::info(dtype).alt == code) return dtype;
  }
  return std::nullopt;
}

}  // namespace poise::alt
