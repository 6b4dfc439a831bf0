// InputSquares: sums of the squares of what meets each matrix, for importance matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/matrix.hpp"

namespace poise {

class InputSquares final : public InputObserver {
 public:
  struct Sums {
    std::vector<double> squares;  // of each input
    std::uint64_t tokens = 0;
  };

  // One call at a time.
  void observe(std::span<const Product> products, const float* x, std::size_t tokens) override;

  // Calls use(origin, sums) for each matrix that has met tokens, in no order.
  void visit(const std::function<void(const Matrix::Origin&, const Sums&)>& use) const;

 private:
  std::unordered_map<const Matrix*, Sums> sums_;
};

}  // namespace poise
