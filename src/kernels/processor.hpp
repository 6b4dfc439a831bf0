// Finds processor features that kernels use in addition to the instruction set that Highway chooses.
#pragma once

#include <hwy/base.h>

namespace poise {

// Lists features that processors with AVX-512 may lack. Instructions of AVX-512 VNNI multiply bytes or 16-bit numbers,
// and sum the products exactly; AVX-512 BF16 rounds float32 numbers to bfloat16.
struct ProcessorFeatures {
#if HWY_ARCH_X86
  bool vnni = __builtin_cpu_supports("avx512vnni") != 0;
  bool bfloat16 = __builtin_cpu_supports("avx512bf16") != 0;
#else
  bool vnni = false;
  bool bfloat16 = false;
#endif
};
inline ProcessorFeatures& get_processor_features() {
  static ProcessorFeatures features;
  return features;
}

inline bool has_vnni() { return get_processor_features().vnni; }
inline bool has_bfloat16() { return get_processor_features().bfloat16; }
// Lets tests switch a feature off and on again. Requires: the processor has the feature if `on` is true.
inline void set_vnni(bool on) { get_processor_features().vnni = on; }
inline void set_bfloat16(bool on) { get_processor_features().bfloat16 = on; }

}  // namespace poise
