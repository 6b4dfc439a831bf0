// MergeInputs: the numbers of the tensors that become one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/tensor.hpp>

#include "views/computed_blob.hpp"

namespace poise {

// Holds tensors of one shape as float32 numbers. With a base, each counts by its differences from that.
class MergeInputs {
 public:
  // Requires: floating-point elements, and equal shapes.
  MergeInputs(std::vector<Tensor> tensors, const Tensor* base);

  std::size_t size() const { return numbers_.size(); }
  std::uint64_t elements() const { return elements_; }
  std::uint64_t row_elements() const { return row_elements_; }  // of the last axis
  bool has_base() const { return base_ != nullptr; }
  bool seekable() const { return seekable_; }
  std::vector<Part> parts() const;  // of all tensors

  // Requires: has_base().
  void read_base(std::uint64_t first, std::span<float> out) const;
  // Reads the numbers of the i-th tensor, less those of `base`, which read_base() gives; empty: there is no base.
  void read(std::size_t i, std::uint64_t first, std::span<const float> base, std::span<float> out) const;

  static constexpr std::uint64_t kChunk = 1 << 16;  // elements that one thread visits: whole blocks

  // Calls visit(local, first, count) for the elements in blocks of at most kBlockSize, in order within chunks of
  // `chunk` elements. Chunks run on all threads if the inputs are seekable, else in order, too.
  template <typename Local, typename Visit>
  void scan(oneapi::tbb::enumerable_thread_specific<Local>& locals, const Visit& visit,
            std::uint64_t chunk = kChunk) const {
    const auto visit_chunk = [&](Local& local, std::uint64_t begin) {
      const std::uint64_t end = std::min(begin + chunk, elements_);
      for (std::uint64_t first = begin; first < end; first += kBlockSize)
        visit(local, first, static_cast<std::size_t>(std::min<std::uint64_t>(kBlockSize, end - first)));
    };
    const std::uint64_t chunks = elements_ / chunk + (elements_ % chunk != 0 ? 1 : 0);
    if (!seekable_) {
      for (std::uint64_t i = 0; i < chunks; ++i) visit_chunk(locals.local(), i * chunk);
      return;
    }
    // The task is isolated: a thread that waits here must not take other work that may wait for this scan.
    oneapi::tbb::this_task_arena::isolate([&] {
      oneapi::tbb::parallel_for(std::uint64_t{0}, chunks,
                                [&](std::uint64_t i) { visit_chunk(locals.local(), i * chunk); });
    });
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<BlobPtr> numbers_;  // float32
  BlobPtr base_;                  // null: none
  std::uint64_t elements_;
  std::uint64_t row_elements_;
  bool seekable_;
};

}  // namespace poise
