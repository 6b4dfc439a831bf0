// The kernels alone, in the cache: what a core does when memory does not limit it.
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "runtime/kernels.hpp"

namespace {

using poise::Storage;

constexpr std::size_t kRows = 64;
constexpr std::size_t kColumns = 2048;

// Products of a matrix and a vector; bytes are those of the weights.
void multiply_vector(benchmark::State& state, Storage storage, double bytes_each) {
  const std::vector<std::byte> weights(kRows * kColumns * 4, std::byte{0x11});
  const std::vector<float> x(kColumns, 1.0F);
  std::vector<float> y(kRows);
  const poise::StoredRows matrix = {.storage = storage, .data = weights.data(), .columns = kColumns};
  for (auto _ : state) {
    poise::multiply_vector(matrix, 0, kRows, x.data(), y.data());
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<double>(state.iterations()) * kRows * kColumns * bytes_each));
}

BENCHMARK_CAPTURE(multiply_vector, f32, Storage::f32, 4.0);
BENCHMARK_CAPTURE(multiply_vector, f16, Storage::f16, 2.0);
BENCHMARK_CAPTURE(multiply_vector, bf16, Storage::bf16, 2.0);
BENCHMARK_CAPTURE(multiply_vector, i8, Storage::i8, 1.0);
BENCHMARK_CAPTURE(multiply_vector, i4, Storage::i4, 0.5);

// Rows times a batch of tokens, in floating-point operations.
void multiply_batch(benchmark::State& state) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::vector<float> weights(8 * kColumns, 0.5F);
  const std::vector<float> x(tokens * kColumns, 1.0F);
  std::vector<float> y(tokens * 8);
  for (auto _ : state) {
    poise::multiply_batch(weights.data(), 8, kColumns, x.data(), tokens, y.data(), 8);
    benchmark::DoNotOptimize(y.data());
  }
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * 8 * kColumns * static_cast<double>(tokens), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(multiply_batch)->Arg(32)->Arg(512);

}  // namespace

BENCHMARK_MAIN();
