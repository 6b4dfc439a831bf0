// Cpuid: the features that an x86 processor reports.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace poise {

// Zeros for leaves that the processor lacks, and on other processors.
struct Cpuid {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
#if defined(__x86_64__)
  Cpuid(unsigned leaf, unsigned part) { __get_cpuid_count(leaf, part, &eax, &ebx, &ecx, &edx); }
#else
  Cpuid(unsigned, unsigned) {}
#endif
};

}  // namespace poise
