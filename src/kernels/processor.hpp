// Processor features that kernels need besides the instruction sets that Highway chooses from.
#pragma once

namespace poise {

// AVX-512 VNNI, which processors with AVX-512 have or not: exact sums of products of 16-bit numbers in one instruction.
bool has_vnni();
// For tests. Requires: `on` only where has_vnni() has been true.
void choose_vnni(bool on);

// AVX-512 BF16, which processors with AVX-512 have or not: float32 numbers rounded to bfloat16.
bool has_bfloat16();
// For tests. Requires: `on` only where has_bfloat16() has been true.
void choose_bfloat16(bool on);

}  // namespace poise
