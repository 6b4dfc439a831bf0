// Times the codecs of block types alone, on files, for scripts/compare_ggml.py.
//
//   poise_blocks decode TYPE BLOCKS NUMBERS
//   poise_blocks encode TYPE LENGTH NUMBERS BLOCKS [IMPORTANCE]     rows of LENGTH numbers
//
// Prints the seconds of the fastest of several rounds. Numbers are float32.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "codec/block_type.hpp"

namespace {

template <typename T>
std::vector<T> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.data(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
  return values;
}

template <typename T>
void write_file(const char* path, const std::vector<T>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

template <typename Work>
void print_fastest(Work work) {
  double fastest = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("%.9f\n", fastest);
}

}  // namespace

int main(int count, char** arguments) {
  const std::span<char*> args(arguments, static_cast<std::size_t>(count));
  const poise::BlockType* const type = args.size() >= 5 ? poise::find_named_block_type(args[2]) : nullptr;
  if (type != nullptr && args[1] == std::string("decode") && type->decode != nullptr) {
    const auto blocks = read_file<std::byte>(args[3]);
    std::vector<float> numbers(blocks.size() / type->bytes * type->elements);
    print_fastest([&] { type->decode(blocks.data(), blocks.size() / type->bytes, numbers.data()); });
    write_file(args[4], numbers);
    return 0;
  }
  if (type != nullptr && args[1] == std::string("encode") && type->encode != nullptr && args.size() >= 6) {
    const std::size_t length = std::strtoull(args[3], nullptr, 10);
    const auto numbers = read_file<float>(args[4]);
    const auto importance = args.size() > 6 ? read_file<float>(args[6]) : std::vector<float>();
    std::vector<std::byte> blocks(numbers.size() / type->elements * type->bytes);
    print_fastest([&] {
      type->encode({numbers.data(), numbers.size() / length, length, importance.empty() ? nullptr : importance.data()},
                   blocks.data());
    });
    write_file(args[5], blocks);
    return 0;
  }
  std::fputs("usage: poise_blocks decode TYPE BLOCKS NUMBERS | encode TYPE LENGTH NUMBERS BLOCKS [IMPORTANCE]\n",
             stderr);
  return 2;
}
