// The kernels for ggml's blocks, for the table of stored_blocks.cpp; each function returns those for the running
// processor.
#pragma once

#include "kernels/stored_type.hpp"

namespace poise {

// With the block type's own decoder.
void decode_blocks(const StoredRows& matrix, const DecodedPart& part);

// scaled_codes.cpp
const TypeKernels& q4_0_kernels();
const TypeKernels& q4_1_kernels();
const TypeKernels& q5_0_kernels();
const TypeKernels& q5_1_kernels();
const TypeKernels& q8_0_kernels();

// codebooks.cpp
const TypeKernels& iq4_nl_kernels();
const TypeKernels& iq4_xs_kernels();
const TypeKernels& mxfp4_kernels();
const TypeKernels& nvfp4_kernels();

// small_codes.cpp
const TypeKernels& q1_0_kernels();
const TypeKernels& q2_0_kernels();
const TypeKernels& tq1_0_kernels();
const TypeKernels& tq2_0_kernels();

// grid_codes.cpp
const TypeKernels& iq1_s_kernels();
const TypeKernels& iq1_m_kernels();
const TypeKernels& iq2_xxs_kernels();
const TypeKernels& iq2_xs_kernels();
const TypeKernels& iq2_s_kernels();
const TypeKernels& iq3_xxs_kernels();
const TypeKernels& iq3_s_kernels();

// super_blocks.cpp
const TypeKernels& q2_k_kernels();
const TypeKernels& q3_k_kernels();
const TypeKernels& q4_k_kernels();
const TypeKernels& q5_k_kernels();
const TypeKernels& q6_k_kernels();
const TypeKernels& q8_k_kernels();

}  // namespace poise
