// The kernels alone, in the cache: what a core does when memory does not limit it, and what it could do.
//
//   poise_kernels [AVX2 | AVX3 | ...]      with that set of instructions, as Highway names it, instead of the best
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/product.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Ten independent sums; returns how many operations one call does.
double MultiplyAndAdd(float* numbers) {
  const hn::ScalableTag<float> tag;
  const auto factor = hn::Set(tag, numbers[0]);
  // Unlike numbers, or compilers do the work once.
  const auto start = [&](float number) HWY_ATTR { return hn::Set(tag, numbers[1] + number); };
  auto a = start(0), b = start(1), c = start(2), d = start(3), e = start(4), f = start(5), g = start(6), h = start(7), i = start(8), j = start(9);
  constexpr int kTimes = 10000;
  for (int n = 0; n < kTimes; ++n) {
    a = hn::MulAdd(a, factor, factor);
    b = hn::MulAdd(b, factor, factor);
    c = hn::MulAdd(c, factor, factor);
    d = hn::MulAdd(d, factor, factor);
    e = hn::MulAdd(e, factor, factor);
    f = hn::MulAdd(f, factor, factor);
    g = hn::MulAdd(g, factor, factor);
    h = hn::MulAdd(h, factor, factor);
    i = hn::MulAdd(i, factor, factor);
    j = hn::MulAdd(j, factor, factor);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(hn::Add(hn::Add(e, f), hn::Add(g, h)), hn::Add(i, j)));
  numbers[1] = hn::GetLane(sum);
  return 2.0 * 10 * kTimes * static_cast<double>(hn::Lanes(tag));
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace poise {

HWY_EXPORT(MultiplyAndAdd);

double multiply_and_add(float* numbers) { return HWY_DYNAMIC_DISPATCH(MultiplyAndAdd)(numbers); }

}  // namespace poise

namespace {

// What the units for float32 can do, from registers alone.
void limit(benchmark::State& state) {
  float numbers[2] = {0.5F, 1.0F};
  double operations = 0;
  for (auto _ : state) {
    operations += poise::multiply_and_add(numbers);
    benchmark::DoNotOptimize(numbers);
  }
  state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsRate);
}

using poise::Storage;

constexpr std::size_t kRows = 512;
constexpr std::size_t kColumns = 2048;
constexpr std::size_t kGroup = 128;

// Products of a matrix with one token or more; bytes are those of the weights.
void multiply(benchmark::State& state, Storage storage, double bytes_each) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> weights(kRows * kColumns * 4, std::byte{0x11});
  const std::vector<std::byte> groups(kRows * kColumns / kGroup * 2, std::byte{0x11});
  const std::vector<float> x(tokens * kColumns, 1.0F);
  std::vector<float> y(tokens * kRows);
  poise::StoredRows matrix = {.storage = storage, .data = weights.data(), .columns = kColumns};
  if (storage == Storage::group8 || storage == Storage::group4) {
    matrix.group_size = kGroup;
    matrix.scales = matrix.zeros = groups.data();
  }
  for (auto _ : state) {
    poise::KernelInput input(matrix, tokens);
    input.take(x.data(), 0, tokens);
    poise::multiply_rows(matrix, 0, kRows, input, y.data(), kRows);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<double>(state.iterations()) * kRows * kColumns * bytes_each));
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * kRows * kColumns * static_cast<double>(tokens), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(limit);
BENCHMARK_CAPTURE(multiply, f32, Storage::f32, 4.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, f16, Storage::f16, 2.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, bf16, Storage::bf16, 2.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, i8, Storage::i8, 1.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, i4, Storage::i4, 0.5)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, group8, Storage::group8, 1.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, group4, Storage::group4, 0.5)->Arg(1)->Arg(256);

bool choose(std::string_view name) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1 && !choose(argv[1])) {
    std::fprintf(stderr, "this processor, or this build, has no %s\n", argv[1]);
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
}

#endif
