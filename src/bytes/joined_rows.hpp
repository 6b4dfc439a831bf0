// Joins constant tables into one.
#pragma once

#include <array>
#include <cstddef>

namespace poise {

// All rows, in order.
template <typename Row, std::size_t... kSizes>
constexpr auto joined(const std::array<Row, kSizes>&... rows) {
  std::array<Row, (kSizes + ...)> all = {};
  std::size_t next = 0;
  const auto add = [&](const auto& table) {
    for (const Row& row : table) all[next++] = row;
  };
  (add(rows), ...);
  return all;
}

}  // namespace poise
