// Measures the speed of reading a file on this machine, directly (the limit) and through the library:
//
//   poise_limits sum FILE THREADS          maps a file and adds up its words
//   poise_limits memcpy FILE THREADS       copies a mapped file into a buffer, part by part
//   poise_limits model-sum MODEL THREADS   adds up the words of every tensor, through Blob::map()
//   poise_limits model-copy MODEL THREADS  copies every tensor, through Blob::read()
//
// Prints the bytes and the seconds of two passes: `first` over a fresh mapping, `again` over mapped pages.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <poise/blob.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/source.hpp>

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kChunk = std::size_t{4} << 20;

// Gives access to a part of a file, to sum it in place or to copy it.
struct Chunk {
  std::function<Bytes()> view;
  std::function<void(std::span<std::byte>)> copy;
  std::size_t size;
};

std::uint64_t sum(Bytes bytes) {
  std::uint64_t lanes[8] = {};
  std::size_t i = 0;
  for (; i + sizeof lanes <= bytes.size(); i += sizeof lanes) {
    std::uint64_t words[8];
    std::memcpy(words, bytes.data() + i, sizeof words);
    for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += words[lane];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t lane : lanes) total += lane;
  for (; i < bytes.size(); ++i) total += std::to_integer<std::uint64_t>(bytes[i]);
  return total;
}

std::vector<Chunk> list_file_chunks(const poise::SourcePtr& source) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 0; at < source->size(); at += kChunk) {
    const std::size_t size = std::min<std::size_t>(kChunk, source->size() - at);
    const Bytes bytes = source->bytes().subspan(at, size);
    chunks.push_back({[bytes] { return bytes; },
                      [bytes](std::span<std::byte> out) { std::memcpy(out.data(), bytes.data(), bytes.size()); },
                      size});
  }
  return chunks;
}

std::vector<Chunk> list_model_chunks(const poise::Model& model) {
  std::vector<Chunk> chunks;
  for (const poise::Tensor& tensor : model.tensors()) {
    for (const poise::Part& part : tensor.parts) {
      const poise::Blob& blob = *part.blob;
      for (std::uint64_t at = 0; at < blob.size(); at += kChunk) {
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, blob.size() - at));
        chunks.push_back({[&blob, at, size] { return blob.map()->subspan(at, size); },
                          [&blob, at](std::span<std::byte> out) { blob.read(at, out); }, size});
      }
    }
  }
  return chunks;
}

double run_pass(const std::vector<Chunk>& chunks, unsigned threads, bool copy) {
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> total = 0;
  const auto work = [&](std::vector<std::byte>& buffer) {
    std::uint64_t mine = 0;
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      if (copy) {
        chunks[i].copy(std::span(buffer).first(chunks[i].size));
        mine += std::to_integer<std::uint64_t>(buffer[0]);
      } else {
        mine += sum(chunks[i].view());
      }
    }
    total += mine;
  };
  std::vector<std::vector<std::byte>> buffers(threads, std::vector<std::byte>(kChunk, std::byte{1}));
  const auto started = std::chrono::steady_clock::now();
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work, std::ref(buffers[i]));
  work(buffers[0]);
  for (std::thread& helper : helpers) helper.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  if (total == 1) std::puts("");  // uses the sum, so that it is computed
  return seconds.count();
}

int run(const std::string& job, const char* path, unsigned threads) {
  const bool copy = job == "memcpy" || job == "model-copy";
  const bool whole_model = job == "model-sum" || job == "model-copy";
  poise::Model model;
  poise::SourcePtr file;
  std::vector<Chunk> chunks;
  if (whole_model) {
    model = poise::open(path);
    chunks = list_model_chunks(model);
  } else if (job == "sum" || job == "memcpy") {
    file = poise::Source::open(path);
    chunks = list_file_chunks(file);
  } else {
    return std::fprintf(stderr, "unknown job %s, expected sum, memcpy, model-sum or model-copy\n", job.c_str()), 2;
  }
  std::uint64_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.size;
  const double first = run_pass(chunks, threads, copy);
  const double second = run_pass(chunks, threads, copy);
  std::printf("{\"bytes\": %llu, \"first\": %.6f, \"again\": %.6f}\n", static_cast<unsigned long long>(bytes), first,
              second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: poise_limits sum|memcpy|model-sum|model-copy PATH THREADS\n"), 2;
  try {
    return run(argv[1], argv[2], static_cast<unsigned>(std::max(1, std::atoi(argv[3]))));
  } catch (const poise::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
