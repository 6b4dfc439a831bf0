#include "runtime/input_squares.hpp"

#include <algorithm>

#include "runtime/parallel.hpp"

namespace poise {

void InputSquares::observe(std::span<const Product> products, const float* x, std::size_t tokens) {
  const std::size_t inputs = products.front().matrix->inputs();
  std::vector<double> squares(inputs);
  run_in_parallel(inputs, std::max<std::size_t>(16, kLeastNumbers / tokens), [&](std::size_t first, std::size_t last) {
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t i = first; i < last; ++i) {
        const auto number = static_cast<double>(x[t * inputs + i]);
        squares[i] += number * number;
      }
    }
  });
  for (const Product& product : products) {
    Sums& sums = sums_[product.matrix];
    sums.squares.resize(inputs);
    for (std::size_t i = 0; i < inputs; ++i) sums.squares[i] += squares[i];
    sums.tokens += tokens;
  }
}

void InputSquares::visit(const std::function<void(const Matrix::Origin&, const Sums&)>& use) const {
  for (const auto& [matrix, sums] : sums_) use(matrix->origin(), sums);
}

}  // namespace poise
