// How few tokens are taken together, so that rows are unpacked once for several; once for each kind of processor.
#if defined(POISE_KERNELS_FEW_TOKENS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_FEW_TOKENS
#undef POISE_KERNELS_FEW_TOKENS
#else
#define POISE_KERNELS_FEW_TOKENS
#endif

#include <cstddef>
#include <type_traits>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kFewTogether = 4;  // tokens

// Returns how many of four rows are taken together, so that the sums of some tokens stay in registers.
constexpr std::size_t RowsTogether(std::size_t tokens) {
#if HWY_TARGET <= HWY_AVX3
  constexpr std::size_t kMostSums = 16;  // of 32 registers
#else
  constexpr std::size_t kMostSums = 8;  // of 16 registers
#endif
  return 4 * tokens > kMostSums ? kMostSums / tokens : 4;
}

// Calls visit(count, t) for tokens t to t + count, until all `tokens` are taken: kMost at a time, then what is left in
// powers of two. The count is a constant.
template <std::size_t kMost, class Visit>
HWY_INLINE void ForTokens(std::size_t tokens, const Visit& visit, std::size_t t = 0) {
  for (; t + kMost <= tokens; t += kMost) visit(std::integral_constant<std::size_t, kMost>(), t);
  if constexpr (kMost > 1) ForTokens<kMost / 2>(tokens, visit, t);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
