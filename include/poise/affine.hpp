// Affine: one linear scale for all codes of a tensor.
//
//   const float number = scale.ranged() ? scale.min + code * scale.delta : code * scale.delta;
#pragma once

namespace poise {

// Describes one linear scale for a whole tensor (spec ALT v2, section 5). It is symmetric when min == max: x = q *
// delta with q two's complement. Otherwise x = min + q * delta with q unsigned.
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
