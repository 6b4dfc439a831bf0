#include "tensor/writer_digests.hpp"

#include <algorithm>
#include <atomic>

#include <oneapi/tbb/task_group.h>

#include <poise/error.hpp>

#include "io/pump.hpp"
#include "io/sha256_lanes.hpp"
#include "tensor/part_digest.hpp"

namespace poise {
namespace {

// So much is read twice at short intervals, and should stay in the page cache. Lanes want many blobs.
std::uint64_t batch_bytes() { return HashOrder::has_lanes() ? 1 << 30 : 256 << 20; }

constexpr DigestAlgorithm kAheadAlgorithm = DigestAlgorithm::sha256;  // slower than writing; others are not

}  // namespace

// Blobs up to `end`.
struct WriterDigests::Batch {
  Batch(std::size_t batch_end, std::vector<std::size_t> indices, std::span<const std::uint64_t> sizes)
      : end(batch_end), blobs(std::move(indices)), order(sizes) {}

  void go_on() const {
    if (given_up) throw Error(ErrorKind::cancelled, "cancelled");
  }

  // Hashes a blob, or gives it to be hashed side by side with others.
  std::optional<Sha256Message> hash(const HashOrder::Item& item, const Blob& blob, std::string& digest) const {
    if (const auto bytes = item.side_by_side(blob)) {
      const auto done = [&digest](std::string digits) { digest = digest_text(kAheadAlgorithm, std::move(digits)); };
      return Sha256Message{*bytes, [this](std::span<const std::byte>) { go_on(); }, done};
    }
    const auto hasher = make_hasher(kAheadAlgorithm);
    stream_chunks(blob, [&](std::span<const std::byte> bytes) {
      go_on();
      hasher->update(bytes);
    });
    digest = digest_text(kAheadAlgorithm, hasher->finish());
    return std::nullopt;
  }

  std::size_t end;
  std::vector<std::size_t> blobs;
  HashOrder order;
  std::atomic<bool> given_up = false;
  oneapi::tbb::task_group tasks;
};

WriterDigests::WriterDigests(DigestAlgorithm algorithm, Of of, std::vector<BlobPtr> blobs)
    : algorithm_(algorithm), blobs_(std::move(blobs)), ahead_(of == Of::blobs && algorithm == kAheadAlgorithm) {
  if (!ahead_) return;
  digests_.resize(blobs_.size());
  begin_batch();
}

WriterDigests::~WriterDigests() {
  if (!running_) return;
  running_->given_up = true;
  running_->order.end();
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
  if (hasher_) return digest_text(algorithm_, hasher_->finish());
  if (!is_ahead(index)) return {};
  while (index >= finished_) finish_batch();
  return std::move(digests_[index]);
}

bool WriterDigests::is_ahead(std::size_t index) const { return ahead_ && blobs_[index]->seekable(); }

void WriterDigests::begin_batch() {
  running_.reset();
  if (finished_ == blobs_.size()) return;
  std::size_t end = finished_;
  std::vector<std::size_t> indices;
  std::vector<std::uint64_t> sizes;
  const std::uint64_t most = batch_bytes();
  for (std::uint64_t bytes = 0; end < blobs_.size() && (bytes == 0 || bytes + blobs_[end]->size() <= most); ++end) {
    if (!is_ahead(end)) continue;
    bytes += sizes.emplace_back(blobs_[end]->size());
    indices.push_back(end);
  }
  running_ = std::make_unique<Batch>(end, std::move(indices), sizes);
  Batch& batch = *running_;
  const auto hash = [this, &batch](const HashOrder::Item& item) {
    const std::size_t index = batch.blobs[item.index];
    return batch.hash(item, *blobs_[index], digests_[index]);
  };
  for (std::size_t thread = 0; thread < batch.order.threads(); ++thread) {
    batch.tasks.run([&batch, hash] { sha256_share(batch.order, hash); });
  }
}

void WriterDigests::finish_batch() {
  running_->tasks.wait();  // the calling thread helps
  finished_ = running_->end;
  begin_batch();
}

}  // namespace poise
