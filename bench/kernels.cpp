// The kernels alone, in the cache: what a core does when memory does not limit it, and what it could do.
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "runtime/kernels.hpp"

namespace {

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
    poise::Input input(matrix, tokens);
    input.take(x.data(), 0, tokens);
    poise::multiply_rows(matrix, 0, kRows, input, y.data(), kRows);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<double>(state.iterations()) * kRows * kColumns * bytes_each));
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * kRows * kColumns * static_cast<double>(tokens), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(multiply, f32, Storage::f32, 4.0)->Arg(1)->Arg(128);
BENCHMARK_CAPTURE(multiply, f16, Storage::f16, 2.0)->Arg(1)->Arg(128);
BENCHMARK_CAPTURE(multiply, bf16, Storage::bf16, 2.0)->Arg(1)->Arg(128);
BENCHMARK_CAPTURE(multiply, i8, Storage::i8, 1.0)->Arg(1)->Arg(128);
BENCHMARK_CAPTURE(multiply, i4, Storage::i4, 0.5)->Arg(1)->Arg(128);
BENCHMARK_CAPTURE(multiply, group8, Storage::group8, 1.0)->Arg(1)->Arg(128);
BENCHMARK_CAPTURE(multiply, group4, Storage::group4, 0.5)->Arg(1)->Arg(128);

}  // namespace

BENCHMARK_MAIN();
