// Times the kernels alone, in the processor's cache, and the theoretical limit of a core.
//
//   poise_kernels [AVX2 | AVX3 | ...]      uses these instructions, named as in Highway, instead of the best ones
//
// The jobs in_memory/TYPE/TOKENS use weights that are too large for a cache, with one and two threads;
// in_memory/read only reads as many bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include <poise/sampler.hpp>

#include "codec/block_type.hpp"
#include "kernels/product.hpp"
#include "runtime/attention.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Computes ten independent sums, and returns the number of operations.
double MultiplyAndAdd(float* numbers) {
  const hn::ScalableTag<float> tag;
  const auto factor = hn::Set(tag, numbers[0]);
  // The sums begin with different numbers, since a compiler would compute equal sums once.
  const auto start = [&](float number) HWY_ATTR { return hn::Set(tag, numbers[1] + number); };
  auto a = start(0), b = start(1), c = start(2), d = start(3), e = start(4), f = start(5), g = start(6), h = start(7),
       i = start(8), j = start(9);
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
  const auto sum =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(hn::Add(hn::Add(e, f), hn::Add(g, h)), hn::Add(i, j)));
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

// Measures the limit of the float32 units, with numbers in registers.
void measure_limit(benchmark::State& state) {
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

// Times products of a matrix with one or more tokens. Bytes count the weights.
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
    input.convert(x.data(), 0, tokens);
    poise::multiply_rows(matrix, 0, kRows, input, y.data(), kRows);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(
      static_cast<std::int64_t>(static_cast<double>(state.iterations()) * kRows * kColumns * bytes_each));
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * kRows * kColumns * static_cast<double>(tokens),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(measure_limit)->Name("limit");
BENCHMARK_CAPTURE(multiply, f32, Storage::f32, 4.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, f16, Storage::f16, 2.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, bf16, Storage::bf16, 2.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, i8, Storage::i8, 1.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, i4, Storage::i4, 0.5)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, group8, Storage::group8, 1.0)->Arg(1)->Arg(256);
BENCHMARK_CAPTURE(multiply, group4, Storage::group4, 0.5)->Arg(1)->Arg(256);

// Times attention of one token, or of the last tokens of a prompt, over a context of 8,192 in memory: four layers of 32
// heads that share 8 heads of keys and values. Bytes count the cache for each token.
void attend_to_context(benchmark::State& state, poise::CacheType type) {
  constexpr std::size_t kContext = 8192;
  constexpr std::size_t kLayers = 4;
  const poise::AttentionHeads heads = {.count = 32, .kv_count = 8, .size = 128};
  poise::KvCache cache(type, {heads.kv_count, heads.size}, std::vector(kLayers, kContext));
  cache.reserve(kContext);
  std::vector<float> numbers(cache.width());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 19) / 10.0F - 0.9F;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    for (std::size_t p = 0; p < kContext; ++p) cache.encode_and_store(layer, p, numbers.data(), numbers.data());
  }
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<poise::AttentionToken> tokens;
  for (std::size_t t = 0; t < count; ++t) tokens.push_back({&cache, kContext - count + t});
  const std::vector<float> queries(count * heads.count * heads.size, 0.1F);
  std::vector<float> out(queries.size());
  for (auto _ : state) {
    for (std::size_t layer = 0; layer < kLayers; ++layer)
      poise::attend(tokens, layer, heads, poise::Precision::fast, queries.data(), out.data());
    benchmark::DoNotOptimize(out.data());
  }
  const std::size_t bytes =
      kLayers * 2 * heads.kv_count * cache.type().count_block_bytes(heads.size) * kContext / poise::kBlockPositions;
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(count * bytes));
}
BENCHMARK_CAPTURE(attend_to_context, f32, poise::CacheType::f32)->Arg(1)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(attend_to_context, f16, poise::CacheType::f16)->Arg(1)->Arg(64)->UseRealTime();
BENCHMARK_CAPTURE(attend_to_context, q8, poise::CacheType::q8)->Arg(1)->Arg(64)->UseRealTime();

// Times the choice of a token from a vocabulary of 150,000 with normally distributed scores.
void sample(benchmark::State& state, const poise::SamplingOptions& options) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, static_cast<float>(state.range(0)));
  std::vector<float> logits(150'000);
  for (float& logit : logits) logit = normal(random);
  poise::Sampler sampler(options);
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(logits));
}
BENCHMARK_CAPTURE(sample, best, poise::SamplingOptions{})->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(sample, temperature, poise::SamplingOptions{.temperature = 0.8F})->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(sample, top_k, poise::SamplingOptions{.temperature = 0.8F, .top_k = 40})->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(sample, top_p, poise::SamplingOptions{.temperature = 0.8F, .top_p = 0.9F})->Arg(1)->Arg(3);
BENCHMARK_CAPTURE(sample, min_p, poise::SamplingOptions{.temperature = 0.8F, .min_p = 0.05F})->Arg(1)->Arg(3);

constexpr std::size_t kInMemory = std::size_t{256} << 20;  // bytes

// Fills the weights with random rows of a block type, repeated; without a type, with a constant byte.
void fill_weights(std::vector<std::byte>& weights, const poise::BlockType* type) {
  if (type == nullptr) return std::fill(weights.begin(), weights.end(), std::byte{0x11});
  std::mt19937 random(1);
  std::vector<float> numbers(std::size_t{64} * kColumns);
  for (float& number : numbers) number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0F;
  std::vector<std::byte> rows(numbers.size() / type->elements * type->bytes, std::byte{0x11});
  if (type->encode != nullptr) type->encode({numbers.data(), 64, kColumns, nullptr}, rows.data());
  for (std::size_t i = 0; i < weights.size(); i += rows.size())
    std::memcpy(weights.data() + i, rows.data(), std::min(rows.size(), weights.size() - i));
}

// Times products of a matrix of blocks with one or more tokens. Bytes count the weights.
void multiply_blocks(benchmark::State& state, const poise::BlockType& type) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> weights(kRows * kColumns / type.elements * type.bytes);
  fill_weights(weights, &type);
  const std::vector<float> x(tokens * kColumns, 1.0F);
  std::vector<float> y(tokens * kRows);
  const poise::StoredRows matrix = {
      .storage = Storage::blocks, .data = weights.data(), .columns = kColumns, .blocks = &type};
  for (auto _ : state) {
    poise::KernelInput input(matrix, tokens);
    for (std::size_t t = 0; t < tokens; t += poise::KernelInput::kTogether)
      input.convert(x.data(), t, std::min(tokens, t + poise::KernelInput::kTogether));
    poise::multiply_rows(matrix, 0, kRows, input, y.data(), kRows);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(weights.size()));
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * kRows * kColumns * static_cast<double>(tokens),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

// Times products with weights in memory, for one token or more. Each thread multiplies a part of the rows.
void multiply_in_memory(benchmark::State& state, Storage storage, const poise::BlockType* type) {
  static std::vector<std::byte> weights;
  if (state.thread_index() == 0) {
    weights.resize(kInMemory);
    fill_weights(weights, type);
  }
  const std::size_t row_bytes =
      poise::count_element_bytes({.storage = storage, .columns = kColumns, .blocks = type}, kColumns);
  const auto threads = static_cast<std::size_t>(state.threads());
  const std::size_t rows = kInMemory / threads / row_bytes / 4 * 4;
  const std::vector<std::byte> groups(rows * kColumns / kGroup * 2, std::byte{0x11});
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::vector<float> x(tokens * kColumns, 1.0F);
  std::vector<float> y(tokens * rows);
  for (auto _ : state) {
    const std::byte* const part = weights.data() + static_cast<std::size_t>(state.thread_index()) * rows * row_bytes;
    poise::StoredRows matrix = {.storage = storage, .data = part, .columns = kColumns, .blocks = type};
    if (storage == Storage::group8 || storage == Storage::group4) {
      matrix.group_size = kGroup;
      matrix.scales = matrix.zeros = groups.data();
    }
    poise::KernelInput input(matrix, tokens);
    input.convert(x.data(), 0, tokens);
    poise::multiply_rows(matrix, 0, rows, input, y.data(), rows);
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(rows * row_bytes));
}

// Times reading the same number of bytes from memory, without products.
void read_memory(benchmark::State& state) {
  static std::vector<std::byte> bytes;
  if (state.thread_index() == 0) bytes.assign(kInMemory, std::byte{0x11});
  const std::size_t size = kInMemory / static_cast<std::size_t>(state.threads());
  for (auto _ : state) {
    const std::byte* const part = bytes.data() + static_cast<std::size_t>(state.thread_index()) * size;
    std::uint64_t lanes[8] = {};
    for (std::size_t i = 0; i < size; i += sizeof lanes) {
      std::uint64_t words[8];
      std::memcpy(words, part + i, sizeof words);
      for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += words[lane];
    }
    benchmark::DoNotOptimize(lanes);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}
BENCHMARK(read_memory)->Name("in_memory/read")->Threads(1)->Threads(2)->UseRealTime();

void register_blocks() {
  const auto register_in_memory = [](const std::string& name, Storage storage, const poise::BlockType* type) {
    benchmark::RegisterBenchmark(("in_memory/" + name).c_str(), multiply_in_memory, storage, type)
        ->Arg(1)
        ->Arg(2)
        ->Arg(4)
        ->Arg(8)
        ->Arg(16)
        ->Threads(1)
        ->Threads(2)
        ->UseRealTime();
  };
  register_in_memory("f16", Storage::f16, nullptr);
  register_in_memory("bf16", Storage::bf16, nullptr);
  register_in_memory("i8", Storage::i8, nullptr);
  register_in_memory("i4", Storage::i4, nullptr);
  register_in_memory("group8", Storage::group8, nullptr);
  register_in_memory("group4", Storage::group4, nullptr);
  for (const poise::BlockType& type : poise::list_block_types()) {
    if (type.decode == nullptr) continue;
    const std::string name(type.name);
    benchmark::RegisterBenchmark(("multiply/" + name).c_str(),
                                 [&type](benchmark::State& state) { multiply_blocks(state, type); })
        ->Arg(1)
        ->Arg(256);
    register_in_memory(name, Storage::blocks, &type);
  }
}

bool choose_target(std::string_view name) {
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
  if (argc > 1 && !choose_target(argv[1])) {
    std::fprintf(stderr, "this processor or this build does not have %s\n", argv[1]);
    return 2;
  }
  register_blocks();
  benchmark::RunSpecifiedBenchmarks();
}

#endif
