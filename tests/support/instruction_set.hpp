// One instruction set for all vector code, while a test runs.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

namespace poise {

class InstructionSet {
 public:
  explicit InstructionSet(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
  }
  ~InstructionSet() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;
};

// For tests that are run with each that this processor has: derive from it, and instantiate with
// every_instruction_set().
class EachInstructionSet : public testing::TestWithParam<std::int64_t> {
  InstructionSet chosen_{GetParam()};
};

inline auto every_instruction_set() { return testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

inline std::string instruction_set_name(const testing::TestParamInfo<std::int64_t>& target) {
  return hwy::TargetName(target.param);
}

}  // namespace poise
