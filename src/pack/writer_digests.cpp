#include "pack/writer_digests.hpp"

#include <atomic>
#include <optional>

#include <oneapi/tbb/task_group.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "pack/sha256_lanes.hpp"

namespace poise {
namespace {

// So much is read again soon after it was written, and should still be in the page cache. Lanes want many parts.
std::uint64_t batch_bytes() { return HashOrder::has_lanes() ? 1 << 30 : 256 << 20; }

constexpr DigestAlgorithm kBehindAlgorithm = DigestAlgorithm::sha256;  // slower than writing; others are not

}  // namespace

struct WriterDigests::Batch {
  Batch(std::vector<BlobPtr> parts, std::vector<std::size_t> their_digests, std::span<const std::uint64_t> sizes)
      : blobs(std::move(parts)), digests(std::move(their_digests)), order(sizes) {}

  void go_on() const {
    if (given_up) throw Error(ErrorKind::cancelled, "cancelled");
  }

  // Hashes a part, or gives it to be hashed side by side with others.
  std::optional<Sha256Message> hash(const HashOrder::Item& item, std::string& digest) const {
    const Blob& blob = *blobs[item.index];
    if (const auto bytes = item.side_by_side(blob)) {
      const auto done = [&digest](std::string digits) { digest = digest_text(kBehindAlgorithm, std::move(digits)); };
      return Sha256Message{*bytes, [this](std::span<const std::byte>) { go_on(); }, done};
    }
    const auto hasher = make_hasher(kBehindAlgorithm);
    stream_chunks(blob, [&](std::span<const std::byte> bytes) {
      go_on();
      hasher->update(bytes);
    });
    digest = digest_text(kBehindAlgorithm, hasher->finish());
    return std::nullopt;
  }

  std::vector<BlobPtr> blobs;
  std::vector<std::size_t> digests;  // their numbers
  std::vector<std::string> texts = std::vector<std::string>(blobs.size());
  HashOrder order;
  std::atomic<bool> given_up = false;
  oneapi::tbb::task_group tasks;
};

WriterDigests::WriterDigests(DigestAlgorithm algorithm) : algorithm_(algorithm) {}

WriterDigests::~WriterDigests() {
  if (!running_) return;
  running_->given_up = true;
  running_->order.end();
  try {
    running_->tasks.wait();
  } catch (...) {  // the caller has an error of its own, or needs no digests any more
  }
}

Hasher* WriterDigests::begin(Sink* sink) {
  file_ = sink != nullptr && algorithm_ == kBehindAlgorithm ? sink->readable() : nullptr;
  if (file_ != nullptr) begin_ = file_->position();
  hasher_ = file_ != nullptr ? nullptr : make_hasher(algorithm_);
  return hasher_.get();
}

std::size_t WriterDigests::end() {
  const std::size_t digest = digests_.size();
  digests_.push_back(hasher_ ? digest_text(algorithm_, hasher_->finish()) : std::string());
  if (file_ == nullptr) return digest;
  const std::uint64_t length = file_->position() - begin_;
  waiting_.push_back({file_, begin_, length, digest});
  waiting_bytes_ += length;
  if (waiting_bytes_ >= batch_bytes()) start_batch();
  return digest;
}

std::vector<std::string> WriterDigests::finish() {
  start_batch();
  finish_batch();
  return std::move(digests_);
}

void WriterDigests::start_batch() {
  finish_batch();
  if (waiting_.empty()) return;
  std::vector<BlobPtr> blobs;
  std::vector<std::size_t> digests;
  std::vector<std::uint64_t> sizes;
  SourcePtr source;
  for (const Written* before = nullptr; const Written& part : waiting_) {
    if (before == nullptr || before->file != part.file) source = part.file->written();
    blobs.push_back(make_source_blob(source, part.offset, part.length));
    digests.push_back(part.digest);
    sizes.push_back(part.length);
    before = &part;
  }
  waiting_.clear();
  waiting_bytes_ = 0;
  running_ = std::make_unique<Batch>(std::move(blobs), std::move(digests), sizes);
  Batch& batch = *running_;
  for (std::size_t thread = 0; thread < batch.order.threads(); ++thread) {
    batch.tasks.run([&batch] { sha256_share(batch.order, [&batch](const HashOrder::Item& item) { return batch.hash(item, batch.texts[item.index]); }); });
  }
}

void WriterDigests::finish_batch() {
  if (!running_) return;
  running_->tasks.wait();  // the calling thread helps
  for (std::size_t i = 0; i < running_->texts.size(); ++i) digests_[running_->digests[i]] = std::move(running_->texts[i]);
  running_.reset();
}

}  // namespace poise
