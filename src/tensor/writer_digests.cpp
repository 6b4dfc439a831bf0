#include "tensor/writer_digests.hpp"

#include <algorithm>
#include <atomic>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_group.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/pump.hpp"
#include "io/sha256_lanes.hpp"
#include "tensor/part_digest.hpp"

namespace poise {
namespace {

// So much is read twice at short intervals, and stays in the page cache. Many blobs side by side need more of them.
std::uint64_t batch_bytes() { return hashes_side_by_side() ? 1 << 30 : 256 << 20; }

bool slower_than_writing(DigestAlgorithm algorithm) { return algorithm == DigestAlgorithm::sha256; }

}  // namespace

// Blobs up to `end`.
struct WriterDigests::Batch {
  std::size_t end = 0;
  std::vector<std::size_t> blobs;
  std::optional<HashOrder> order;
  std::atomic<bool> given_up = false;
  oneapi::tbb::task_group tasks;

  void go_on() const {
    if (given_up) throw Error(ErrorKind::cancelled, "cancelled");
  }

  // Hashes blob by blob until all are begun, or hands out those that are best hashed side by side.
  std::optional<Sha256Message> hash_next(const std::vector<BlobPtr>& all, std::vector<std::string>& digests) {
    while (const auto item = order->next()) {
      const Blob& blob = *all[blobs[item->index]];
      std::string& digest = digests[blobs[item->index]];
      if (const auto bytes = item->alone ? std::nullopt : side_by_side_bytes(blob)) {
        const auto done = [&digest](const std::string& digits) { digest = fmt::format("{}:{}", digest_name(DigestAlgorithm::sha256), digits); };
        return Sha256Message{*bytes, [this](std::span<const std::byte>) { go_on(); }, done};
      }
      const auto hasher = make_hasher(DigestAlgorithm::sha256);
      stream_chunks(blob, [&](std::span<const std::byte> bytes) {
        go_on();
        hasher->update(bytes);
      });
      digest = digest_text(DigestAlgorithm::sha256, *hasher);
    }
    return std::nullopt;
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
  running_->order->end();
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
  const std::uint64_t most = batch_bytes();
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 0; batch.end < blobs_.size() && (bytes == 0 || bytes + blobs_[batch.end]->size() <= most); ++batch.end) {
    if (!is_ahead(batch.end)) continue;
    bytes += sizes.emplace_back(blobs_[batch.end]->size());
    batch.blobs.push_back(batch.end);
  }
  batch.order.emplace(sizes);
  const int threads = oneapi::tbb::info::default_concurrency();
  for (int thread = 0; thread < threads; ++thread) {
    batch.tasks.run([this, &batch] { sha256_side_by_side([&] { return batch.hash_next(blobs_, digests_); }); });
  }
}

void WriterDigests::finish_batch() {
  running_->tasks.wait();  // the calling thread helps
  finished_ = running_->end;
  begin_batch();
}

}  // namespace poise
