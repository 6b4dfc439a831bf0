// Processor features that kernels need besides the instruction sets that Highway chooses from.
#pragma once

namespace poise {

// AVX-512 VNNI, which processors with AVX-512 have or not: exact sums of products of 16-bit numbers in one instruction.
bool has_vnni();
// For tests. Requires: `on` only where has_vnni() has been true.
void choose_vnni(bool on);

}  // namespace poise
