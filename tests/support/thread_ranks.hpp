// Ranks in threads of one process, which meet at a barrier.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "cluster/communicator.hpp"

namespace poise::support {

class ThreadRanks {
 public:
  explicit ThreadRanks(std::size_t count)
      : sources_(count), exchanges_(count), barrier_(static_cast<std::ptrdiff_t>(count)) {
    for (std::size_t rank = 0; rank < count; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank, count));
  }

  Communicator& operator[](std::size_t rank) { return *ranks_[rank]; }
  std::size_t size() const { return ranks_.size(); }
  // Returns how often a rank has exchanged bytes with the others.
  std::size_t exchanges(std::size_t rank) const { return exchanges_[rank]; }

  // Calls work(rank) for all ranks at the same time.
  template <typename Work>
  void run(const Work& work) {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < size(); ++rank) threads.emplace_back([&work, rank] { work(rank); });
  }

 private:
  class Rank final : public Communicator {
   public:
    Rank(ThreadRanks& all, std::size_t rank, std::size_t count) : Communicator(rank, count), all_(all) {}

    void broadcast(std::span<std::byte> bytes, std::size_t from) override {
      meet(bytes);
      if (rank() != from) std::ranges::copy(all_.sources_[from], bytes.begin());
      all_.barrier_.arrive_and_wait();
    }
    int end(int code) override { return code; }
    int error_output() const override { return 2; }

   protected:
    void gather_bytes(std::span<const std::byte> own, std::span<const std::size_t> sizes,
                      std::span<std::byte> all) override {
      meet(own);
      for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
        std::copy_n(all_.sources_[rank].begin(), sizes[rank], all.begin());
        all = all.subspan(sizes[rank]);
      }
      all_.barrier_.arrive_and_wait();
    }

    void exchange_slices(std::span<const float> numbers, std::span<const std::size_t> slices,
                         std::span<float> parts) override {
      meet(std::as_bytes(numbers));
      const std::size_t size = slices[rank()] * sizeof(float);
      const std::size_t first =
          std::accumulate(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(rank()), std::size_t{0});
      auto to = std::as_writable_bytes(parts);
      for (const std::span<const std::byte> source : all_.sources_) {
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(first * sizeof(float)), size, to.begin());
        to = to.subspan(size);
      }
      all_.barrier_.arrive_and_wait();
    }

   private:
    void meet(std::span<const std::byte> bytes) {
      ++all_.exchanges_[rank()];
      all_.sources_[rank()] = bytes;
      all_.barrier_.arrive_and_wait();
    }

    ThreadRanks& all_;
  };

  std::vector<std::span<const std::byte>> sources_;
  std::vector<std::size_t> exchanges_;
  std::barrier<> barrier_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace poise::support
