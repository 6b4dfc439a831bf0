#include "kernels/processor.hpp"

#include <hwy/base.h>

namespace poise {
namespace {

bool& vnni() {
#if HWY_ARCH_X86
  static bool is_there = __builtin_cpu_supports("avx512vnni") != 0;
#else
  static bool is_there = false;
#endif
  return is_there;
}

bool& bfloat16() {
#if HWY_ARCH_X86
  static bool is_there = __builtin_cpu_supports("avx512bf16") != 0;
#else
  static bool is_there = false;
#endif
  return is_there;
}

}  // namespace

bool has_vnni() { return vnni(); }
void choose_vnni(bool on) { vnni() = on; }

bool has_bfloat16() { return bfloat16(); }
void choose_bfloat16(bool on) { bfloat16() = on; }

}  // namespace poise
