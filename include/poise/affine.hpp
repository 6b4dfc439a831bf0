// Affine describes the one linear scale of all codes of a tensor.
//
//   const float number = scale.ranged() ? scale.min + code * scale.delta : code * scale.delta;
#pragma once

namespace poise {

// A code q stands for the number x (spec ALT v2, section 5). If min == max, q is two's complement, and x = q * delta.
// Otherwise q is unsigned, and x = min + q * delta.
struct Affine {
  float delta = 0;
  float min = 0;
  float max = 0;
  bool packed = false;  // qint4: two codes a byte, the even element in the low nibble

  // Returns true if codes are unsigned and count from min.
  bool ranged() const { return min < max; }
  friend bool operator==(const Affine&, const Affine&) = default;
};

}  // namespace poise
