// Models made from bytes, deterministically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <poise/model.hpp>

#include "target.hpp"

namespace poise::fuzz {

// Choices drawn from bytes; 0 at their end.
class Dice {
 public:
  explicit Dice(Bytes bytes) : bytes_(bytes) {}

  std::uint8_t byte();
  std::uint64_t below(std::uint64_t limit);  // Requires: limit > 0.
  bool chance() { return (byte() & 1U) != 0; }
  std::uint64_t number();  // of 64 bits, small ones most of all
  float real();            // finite
  std::string text();      // UTF-8, sometimes difficult for formats

 private:
  Bytes bytes_;
};

// Tensors of every layout and element type, a card, a configuration, a vocabulary and attributes, each optional. One in
// eight is a whole Tiny Llama.
Model random_model(Dice& dice);

}  // namespace poise::fuzz
