// Sums up the squares of each matrix's inputs, for importance matrices.
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
    std::vector<double> squares;  // for each input of the matrix, the sum over tokens
    std::uint64_t tokens = 0;
  };

  // Adds the squares of x. Only one thread at a time may call it, so passes must have two tokens or more.
  void observe(std::span<const Product> products, const float* x, std::size_t tokens) override;

  // Calls use(origin, sums) for each matrix that has had inputs, in no particular order.
  void visit(const std::function<void(const Matrix::Origin&, const Sums&)>& use) const;

 private:
  std::unordered_map<const Matrix*, Sums> sums_;
};

}  // namespace poise
