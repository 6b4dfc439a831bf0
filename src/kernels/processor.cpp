#include "kernels/processor.hpp"

#include <hwy/base.h>

namespace poise {
namespace {

struct Features {
#if HWY_ARCH_X86
  bool vnni = __builtin_cpu_supports("avx512vnni") != 0;
  bool bfloat16 = __builtin_cpu_supports("avx512bf16") != 0;
#else
  bool vnni = false;
  bool bfloat16 = false;
#endif
};

Features& features() {
  static Features of_processor;
  return of_processor;
}

}  // namespace

bool has_vnni() { return features().vnni; }
void choose_vnni(bool on) { features().vnni = on; }

bool has_bfloat16() { return features().bfloat16; }
void choose_bfloat16(bool on) { features().bfloat16 = on; }

}  // namespace poise
