// How long a vocabulary takes to load, and how fast texts are encoded: poise_tokens VOCABULARY [TEXT...]. Best of
// several rounds, user time.
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

double seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

template <typename Work>
double best_of(int rounds, Work&& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double before = seconds();
    work();
    best = std::min(best, seconds() - before);
  }
  return best;
}

poise::Vocabulary load(const char* path) {
  if (auto vocabulary = poise::read_vocabulary(path)) return *std::move(vocabulary);
  if (auto vocabulary = poise::make_vocabulary(poise::open(path))) return *std::move(vocabulary);
  throw poise::Error(poise::ErrorKind::not_found, "no vocabulary", path);
}

}  // namespace

int main(int count, char** arguments) try {
  const std::span<char*> all(arguments, static_cast<std::size_t>(count));
  if (all.size() < 2) return 2;
  std::optional<poise::Vocabulary> vocabulary;
  const double reading = best_of(5, [&] { vocabulary = load(all[1]); });
  std::optional<poise::Tokenizer> tokenizer;
  const double building = best_of(5, [&] { tokenizer.emplace(*vocabulary); });
  std::printf("%s: read %.0f ms, built %.0f ms, of user time\n", all[1], reading * 1e3, building * 1e3);
  for (const char* path : all.subspan(2)) {
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::size_t tokens = 0;
    // A new tokenizer each round, without a cache of the text.
    double encoding = 1e9;
    for (int round = 0; round < 5; ++round) {
      const poise::Tokenizer fresh(*vocabulary);
      const double before = seconds();
      tokens = fresh.encode(text).size();
      encoding = std::min(encoding, seconds() - before);
    }
    std::printf("  %-12s %8zu bytes %8zu tokens %7.1f MB/s\n", path, text.size(), tokens,
                static_cast<double>(text.size()) * 1e-6 / encoding);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
