#include "tensor/digests_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_group.h>

#include <poise/error.hpp>

#include "io/pump.hpp"
#include "tensor/part_digest.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kBatchBytes = 256 << 20;  // so much is read twice at short intervals, and stays in the page cache

}  // namespace

// Blobs [begin, end), the largest first, so that all threads end at about the same time.
struct DigestsAhead::Batch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<std::size_t> order;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> given_up = false;
  oneapi::tbb::task_group tasks;

  void hash(const Blob& blob, DigestAlgorithm algorithm, std::string& digest) {
    const auto hasher = make_hasher(algorithm);
    stream_chunks(blob, [&](std::span<const std::byte> bytes) {
      if (given_up) throw Error(ErrorKind::cancelled, "cancelled");
      hasher->update(bytes);
    });
    digest = digest_text(algorithm, *hasher);
  }
};

DigestsAhead::DigestsAhead(std::vector<BlobPtr> blobs, DigestAlgorithm algorithm) : blobs_(std::move(blobs)), algorithm_(algorithm), digests_(blobs_.size()) {
  begin_next();
}

DigestsAhead::~DigestsAhead() {
  if (!running_) return;
  running_->given_up = true;
  running_->next = running_->order.size();
  try {
    running_->tasks.wait();
  } catch (...) {  // whoever destroys this has an error of its own, or needs no digests any more
  }
}

void DigestsAhead::begin_next() {
  running_.reset();
  if (finished_ == blobs_.size()) return;
  running_ = std::make_unique<Batch>();
  Batch& batch = *running_;
  batch.begin = batch.end = finished_;
  for (std::uint64_t bytes = 0; batch.end < blobs_.size() && (bytes == 0 || bytes + blobs_[batch.end]->size() <= kBatchBytes); ++batch.end) {
    bytes += blobs_[batch.end]->size();
  }
  batch.order.resize(batch.end - batch.begin);
  std::iota(batch.order.begin(), batch.order.end(), batch.begin);
  std::ranges::sort(batch.order, std::ranges::greater(), [this](std::size_t i) { return blobs_[i]->size(); });
  const int threads = oneapi::tbb::info::default_concurrency();
  for (int thread = 0; thread < threads; ++thread) {
    batch.tasks.run([this, &batch] {
      for (std::size_t i = batch.next++; i < batch.order.size(); i = batch.next++) batch.hash(*blobs_[batch.order[i]], algorithm_, digests_[batch.order[i]]);
    });
  }
}

const std::string& DigestsAhead::of(std::size_t index) {
  while (index >= finished_) {
    running_->tasks.wait();
    finished_ = running_->end;
    begin_next();
  }
  return digests_[index];
}

bool worth_hashing_ahead(DigestAlgorithm algorithm) { return algorithm == DigestAlgorithm::sha256; }

}  // namespace poise
