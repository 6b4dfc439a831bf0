// Makes models from bytes: equal bytes give equal models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <poise/model.hpp>

#include "target.hpp"

namespace poise::fuzz {

// Draws choices from bytes; all are 0 after the last byte.
class Dice {
 public:
  explicit Dice(Bytes bytes) : bytes_(bytes) {}

  std::uint8_t byte();
  std::uint64_t below(std::uint64_t limit);  // Requires: limit > 0.
  bool chance() { return (byte() & 1U) != 0; }
  std::uint64_t number();  // of 64 bits, mostly small
  float real();            // finite
  std::string text();      // UTF-8, sometimes difficult for formats

 private:
  Bytes bytes_;
};

// Makes a model with tensors of every layout and element type, a card, a configuration, a vocabulary and attributes,
// each optional. One model in eight is a whole Tiny Llama.
Model make_random_model(Dice& dice);

}  // namespace poise::fuzz
