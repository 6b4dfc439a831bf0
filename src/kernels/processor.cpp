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

}  // namespace

bool has_vnni() { return vnni(); }
void choose_vnni(bool on) { vnni() = on; }

}  // namespace poise
