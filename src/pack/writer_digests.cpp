#include "pack/writer_digests.hpp"

#include <utility>

#include <poise/blob.hpp>

#include "pack/part_digest.hpp"
#include "pack/scan.hpp"

namespace poise {
namespace {

constexpr DigestAlgorithm kReadAgain = DigestAlgorithm::sha256;  // the only one that is slower than writing

class PartDigest final : public Visitor {
 public:
  explicit PartDigest(std::string& text) : text_(text) {}
  void update(std::span<const std::byte>) override {}
  void end(std::string sha256) override { text_ = format_digest(kReadAgain, std::move(sha256)); }

 private:
  std::string& text_;
};

}  // namespace

struct WriterDigests::Batch {
  Batch(std::vector<BlobPtr> parts, std::vector<std::size_t> their_digests, std::span<const std::uint64_t> sizes)
      : blobs(std::move(parts)), digests(std::move(their_digests)), scan(sizes, [this](std::size_t index) {
          return Visit{blobs[index], true, std::make_unique<PartDigest>(texts[index])};
        }) {}

  std::vector<BlobPtr> blobs;
  std::vector<std::size_t> digests;  // for each blob, the index of its digest in WriterDigests::digests_
  std::vector<std::string> texts = std::vector<std::string>(blobs.size());
  Scan scan;
};

WriterDigests::WriterDigests(DigestAlgorithm algorithm) : algorithm_(algorithm) {}

WriterDigests::~WriterDigests() = default;

Hasher* WriterDigests::begin_part(Sink* sink) {
  file_ = sink != nullptr && algorithm_ == kReadAgain ? sink->readable_sink() : nullptr;
  if (file_ != nullptr) begin_ = file_->position();
  hasher_ = file_ != nullptr ? nullptr : make_hasher(algorithm_);
  return hasher_.get();
}

std::size_t WriterDigests::end_part(bool is_here) {
  const std::size_t digest = digests_.size();
  digests_.push_back(hasher_ && is_here ? format_digest(algorithm_, hasher_->finish()) : std::string());
  if (file_ == nullptr || !is_here) return digest;
  const std::uint64_t length = file_->position() - begin_;
  waiting_.push_back({file_, begin_, length, digest});
  waiting_bytes_ += length;
  if (waiting_bytes_ >= Scan::kBatchBytes) start_batch();
  return digest;
}

std::vector<std::string> WriterDigests::finish(Output& output) {
  std::vector<std::string> texts = finish();
  if (algorithm_ != DigestAlgorithm::none) output.complete_texts(texts);
  return texts;
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
    if (before == nullptr || before->file != part.file) source = part.file->read_back();
    blobs.push_back(make_source_blob(source, part.offset, part.length));
    digests.push_back(part.digest);
    sizes.push_back(part.length);
    before = &part;
  }
  waiting_.clear();
  waiting_bytes_ = 0;
  running_ = std::make_unique<Batch>(std::move(blobs), std::move(digests), sizes);
  running_->scan.start();
}

void WriterDigests::finish_batch() {
  if (!running_) return;
  running_->scan.finish();
  for (std::size_t i = 0; i < running_->texts.size(); ++i)
    digests_[running_->digests[i]] = std::move(running_->texts[i]);
  running_.reset();
}

}  // namespace poise
