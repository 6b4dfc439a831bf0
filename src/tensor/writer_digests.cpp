#include "tensor/writer_digests.hpp"

#include <algorithm>
#include <atomic>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_group.h>

#include <poise/error.hpp>

#include "io/pump.hpp"
#include "tensor/part_digest.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kBatchBytes = 256 << 20;  // so much is read twice at short intervals, and stays in the page cache

bool slower_than_writing(DigestAlgorithm algorithm) { return algorithm == DigestAlgorithm::sha256; }

}  // namespace

// The next blobs up to `end`, the largest first, so that all threads end at about the same time.
struct WriterDigests::Batch {
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

WriterDigests::WriterDigests(DigestAlgorithm algorithm, Of of, std::vector<BlobPtr> blobs)
    : algorithm_(algorithm), blobs_(std::move(blobs)), ahead_(of == Of::blobs && slower_than_writing(algorithm)) {
  if (!ahead_) return;
  digests_.resize(blobs_.size());
  begin_batch();
}

WriterDigests::~WriterDigests() {
  if (!running_) return;
  running_->given_up = true;
  running_->next = running_->order.size();
  try {
    running_->tasks.wait();
  } catch (...) {  // whoever destroys this has an error of its own, or needs no digests any more
  }
}

Hasher* WriterDigests::begin() {
  hasher_ = is_ahead(next_) ? nullptr : make_hasher(algorithm_);
  return hasher_.get();
}

std::string WriterDigests::end() {
  const std::size_t index = next_++;
  if (hasher_) return digest_text(algorithm_, *hasher_);
  if (!is_ahead(index)) return {};
  while (index >= finished_) finish_batch();
  return std::move(digests_[index]);
}

bool WriterDigests::is_ahead(std::size_t index) const { return ahead_ && blobs_[index]->seekable(); }

void WriterDigests::begin_batch() {
  running_.reset();
  if (finished_ == blobs_.size()) return;
  running_ = std::make_unique<Batch>();
  Batch& batch = *running_;
  batch.end = finished_;
  for (std::uint64_t bytes = 0; batch.end < blobs_.size() && (bytes == 0 || bytes + blobs_[batch.end]->size() <= kBatchBytes); ++batch.end) {
    if (!is_ahead(batch.end)) continue;
    bytes += blobs_[batch.end]->size();
    batch.order.push_back(batch.end);
  }
  std::ranges::sort(batch.order, std::ranges::greater(), [this](std::size_t i) { return blobs_[i]->size(); });
  const int threads = oneapi::tbb::info::default_concurrency();
  for (int thread = 0; thread < threads; ++thread) {
    batch.tasks.run([this, &batch] {
      for (std::size_t i = batch.next++; i < batch.order.size(); i = batch.next++) batch.hash(*blobs_[batch.order[i]], algorithm_, digests_[batch.order[i]]);
    });
  }
}

void WriterDigests::finish_batch() {
  running_->tasks.wait();  // the calling thread helps
  finished_ = running_->end;
  begin_batch();
}

}  // namespace poise
