// ExpertsStored: one tensor for each expert, or stacks of them.
#pragma once

#include <cstdint>

namespace poise {

// How a checkpoint stores the matrices of experts.
enum class ExpertsStored : std::uint8_t {
  separate,        // a tensor for each expert
  stacked_in_out,  // one for all of them: [experts, in, out]
  stacked_out_in,  // [experts, out, in]
};

}  // namespace poise
