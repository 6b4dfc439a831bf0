// Checks of verify() on the values of one part: each check sees the part's decoded bytes once and collects faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/finding.hpp>
#include <poise/tensor.hpp>

#include "views/value_rules.hpp"

namespace poise {

// A faulty value.
struct BadValue {
  Severity severity = Severity::error;
  std::string problem;     // "element 7 is not finite"
  std::uint64_t byte = 0;  // where, in decoded bytes of the part
};

class ValueCheck {
 public:
  virtual ~ValueCheck() = default;
  // Bytes [position, position + bytes.size()) of the part; whole elements. In order, without gaps.
  virtual void see(std::uint64_t position, std::span<const std::byte> bytes) = 0;
  // Adds the faults. `complete`: it saw the whole part.
  virtual void tell(bool complete, std::vector<BadValue>& bad) const = 0;
};

// Checks that booleans are 0 or 1, floating-point values finite (else a warning), unused halves of bytes zero, and that
// codes fit their bits. Omits checks that do not apply.
std::vector<std::unique_ptr<ValueCheck>> make_value_checks(const ValueRules& rules);

}  // namespace poise
