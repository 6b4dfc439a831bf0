// Selects one instruction set for all vector code while a test runs.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

namespace poise {

// Returns the default instruction set of tests; 0: the best available. support/units.hpp sets it.
inline std::int64_t& instruction_set_of_run() {
  static std::int64_t target = 0;
  return target;
}

class InstructionSet {
 public:
  explicit InstructionSet(std::int64_t target) { choose(target); }
  ~InstructionSet() { choose(instruction_set_of_run()); }
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    if (target == 0) return hwy::GetChosenTarget().DeInit();
    hwy::GetChosenTarget().Update(target);
  }
};

// Runs tests with each instruction set of this processor: derive from it, and instantiate with every_instruction_set().
class EachInstructionSet : public testing::TestWithParam<std::int64_t> {
  InstructionSet chosen_{GetParam()};
};

inline auto every_instruction_set() { return testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

inline std::string instruction_set_name(const testing::TestParamInfo<std::int64_t>& target) {
  return hwy::TargetName(target.param);
}

}  // namespace poise
