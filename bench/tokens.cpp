// Times loading a vocabulary and encoding texts: poise_tokens VOCABULARY [TEXT...]. Prints the processor time of the
// best of several rounds.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tokenizer.hpp>

#include "tokenizer/gguf/vocabulary.hpp"

namespace {

double read_processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto to_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

template <typename Work>
double measure_best(int rounds, Work&& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double before = read_processor_seconds();
    work();
    best = std::min(best, read_processor_seconds() - before);
  }
  return best;
}

poise::Vocabulary load_vocabulary(const char* path) {
  if (auto vocabulary = poise::read_vocabulary(path)) return *std::move(vocabulary);
  if (auto vocabulary = poise::make_vocabulary(poise::open(path))) return *std::move(vocabulary);
  throw poise::Error(poise::ErrorKind::not_found, "no vocabulary", path);
}

}  // namespace

int main(int count, char** arguments) try {
  const std::span<char*> all(arguments, static_cast<std::size_t>(count));
  if (all.size() < 2) return 2;
  std::optional<poise::Vocabulary> vocabulary;
  const double reading = measure_best(5, [&] { vocabulary = load_vocabulary(all[1]); });
  std::optional<poise::Tokenizer> tokenizer;
  const double building = measure_best(5, [&] { tokenizer.emplace(*vocabulary); });
  std::printf("%s: read %.0f ms, built %.0f ms, of user time\n", all[1], reading * 1e3, building * 1e3);
  for (const char* path : all.subspan(2)) {
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::size_t tokens = 0;
    // Each round has a new tokenizer, whose cache does not have the words of the text yet.
    double encoding = 1e9;
    for (int round = 0; round < 5; ++round) {
      const poise::Tokenizer fresh(*vocabulary);
      const double before = read_processor_seconds();
      tokens = fresh.encode(text).size();
      encoding = std::min(encoding, read_processor_seconds() - before);
    }
    std::printf("  %-12s %8zu bytes %8zu tokens %7.1f MB/s\n", path, text.size(), tokens,
                static_cast<double>(text.size()) * 1e-6 / encoding);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
