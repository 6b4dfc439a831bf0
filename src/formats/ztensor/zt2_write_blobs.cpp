#include "formats/ztensor/zt2.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/ztensor/object.hpp"
#include "io/meter.hpp"
#include "pack/digest.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "pack/writer_digests.hpp"
#include "pack/zstd.hpp"

namespace poise::ztensor {
namespace {

void write_magic2(Sink& sink) { sink.write(std::as_bytes(std::span(kMagic2))); }

// Chooses the file of each blob: the main file or, with WriteOptions::shard_size, a data shard. Begins another shard
// when the next blob does not fit the current one. Writes the shards' magic numbers and footers.
class ShardWriter {
 public:
  ShardWriter(Output& output, const WriteOptions& options)
      : output_(output),
        shard_size_(options.shard_size),
        shard_digest_(options.digest == DigestAlgorithm::sha256 ? DigestAlgorithm::sha256 : DigestAlgorithm::xxh3) {
    write_magic2(output_.main());
  }

  // Returns the sink for the next blob, in a new shard if the blob does not fit the current one. `bytes` is the size
  // before compression.
  Sink& choose_sink(std::uint64_t bytes, std::uint64_t alignment) {
    if (!shard_size_) return output_.main();
    if (hashing_) {
      const std::uint64_t begin = (hashing_->position() + alignment - 1) / alignment * alignment;
      if (begin + bytes + kFooterBytes2 > *shard_size_) finish_shard();
    }
    if (!hashing_) begin_shard();
    return *hashing_;
  }

  // Returns the name of the current shard; empty for the main file.
  std::string shard() const { return hashing_ ? shards_.back().name : std::string(); }

  std::vector<Shard> finish() {
    if (hashing_) finish_shard();
    std::vector<std::string> digests;
    for (const Shard& shard : shards_) digests.push_back(shard.digest);
    if (!shards_.empty()) output_.complete_texts(digests);
    for (std::size_t i = 0; i < shards_.size(); ++i) shards_[i].digest = std::move(digests[i]);
    return std::move(shards_);
  }

 private:
  void begin_shard() {
    if (shards_.size() == kMaxShards)
      throw Error(ErrorKind::unsupported,
                  fmt::format("zTensor 2: more than {} shards; a larger shard size makes fewer", kMaxShards));
    Shard& shard = shards_.emplace_back();
    shard.name = fmt::format("{:05}", shards_.size());
    const std::string file = make_shard_path(output_.name(), shard.name).string();
    hasher_ = make_hasher(shard_digest_);
    file_ = &output_.open_sibling(file);
    is_here_ = file_->begin_part(*shard_size_);
    hashing_.emplace(*file_, *hasher_, is_here_);
    write_magic2(*hashing_);
  }

  void finish_shard() {
    hashing_->write(make_footer(0, {}).bytes());
    shards_.back().size = hashing_->position();
    if (is_here_) shards_.back().digest = format_digest(shard_digest_, hasher_->finish());
    file_->end_part();
    hashing_.reset();
  }

  Output& output_;
  std::optional<std::uint64_t> shard_size_;
  DigestAlgorithm shard_digest_;
  std::vector<Shard> shards_;
  // The following members belong to the open shard.
  Sink* file_ = nullptr;
  bool is_here_ = true;  // whether this process writes the shard
  std::unique_ptr<Hasher> hasher_;
  std::optional<HashingSink> hashing_;
};

// Finds parts whose bytes have been written already. Compares a part with others of the same size and the same hash of
// their beginning, so most parts are read only once. If there are more than kMostCompared of these, compares only those
// with the same hash of all bytes.
class SharedBlobs {
 public:
  explicit SharedBlobs(const std::vector<StoredTensor>& tensors) {
    for (const StoredTensor& tensor : tensors) {
      for (const StoredPart& part : tensor.parts) ++sizes_[part.blob->size()];
    }
  }

  const BlobReference* find(const Blob& blob) {
    if (sizes_[blob.size()] < 2) return nullptr;
    candidates_ = &written_[{blob.size(), hash_beginning(blob)}];
    auto& [few, hashed] = *candidates_;
    hash_.clear();
    const auto is_same = [&](const Written& other) { return have_same_bytes(*other.blob, blob); };
    if (few.size() < kMostCompared && hashed.empty()) {
      const auto found = std::ranges::find_if(few, is_same);
      return found == few.end() ? nullptr : &found->reference;
    }
    for (Written& other : few) hashed.emplace(hash_all(*other.blob), std::move(other));
    few.clear();
    hash_ = hash_all(blob);
    const auto [first, last] = hashed.equal_range(hash_);
    const auto found = std::find_if(first, last, [&](const auto& entry) { return is_same(entry.second); });
    return found == last ? nullptr : &found->second.reference;
  }

  // Requires: find() was called with this blob just before.
  void add(const Blob& blob, const BlobReference& reference) {
    if (sizes_[blob.size()] < 2) return;
    if (hash_.empty()) {
      candidates_->few.push_back({&blob, reference});
    } else {
      candidates_->hashed.emplace(hash_, Written{&blob, reference});
    }
  }

 private:
  struct Written {
    const Blob* blob;
    BlobReference reference;
  };
  // Holds blobs of one size that begin with the same bytes: either all in `few`, or all in `hashed`.
  struct Candidates {
    std::vector<Written> few;
    std::multimap<std::string, Written> hashed;  // by the hash of all bytes
  };
  static constexpr std::size_t kMostCompared = 4;

  static std::string hash_all(const Blob& blob) {
    const auto hasher = make_xxh3();
    stream_chunks(blob, [&](std::span<const std::byte> bytes) { hasher->update(bytes); });
    return hasher->finish();
  }

  std::map<std::uint64_t, std::size_t> sizes_;  // the number of parts of each size
  std::map<std::pair<std::uint64_t, std::uint64_t>, Candidates> written_;
  Candidates* candidates_ = nullptr;  // those of the blob that find() was called with
  std::string hash_;                  // its hash; empty if few blobs were compared
};

class BlobWriter {
 public:
  BlobWriter(ShardWriter& heap, const BlobStorage& storage, const Progress& progress, const std::vector<BlobPtr>& blobs)
      : heap_(heap),
        alignment_(storage.alignment),
        zstd_level_(storage.zstd_level),
        digests_(storage.digest),
        meter_(progress, sum_sizes(blobs)) {}

  BlobReference write(const std::string& name, const Blob& blob) {
    Sink& sink = heap_.choose_sink(blob.size(), alignment_);
    sink.pad_to(alignment_);
    BlobReference reference;
    reference.offset = sink.position();
    reference.shard = heap_.shard();
    Hasher* const hasher = digests_.begin_part(zstd_level_ ? nullptr : &sink);
    bool is_here = true;
    if (zstd_level_) {
      reference.encoded = true;
      write_zstd_seekable(blob, *zstd_level_, sink, meter_, name, hasher);
    } else {
      is_here = write_blob(blob, sink, meter_, name, hasher);
    }
    reference.length = sink.position() - reference.offset;
    reference.digest = digests_.end_part(is_here);
    return reference;
  }

  void skip(const std::string& name, const Blob& blob) { meter_.advance(blob.size(), name); }

  // Returns the texts of the digests; BlobReference::digest is an index into this list. Texts are empty for
  // DigestAlgorithm::none.
  std::vector<std::string> finish(Output& output) { return digests_.finish(output); }

 private:
  ShardWriter& heap_;
  std::uint64_t alignment_;
  std::optional<int> zstd_level_;
  WriterDigests digests_;
  Meter meter_;
};

}  // namespace

BlobStorage::BlobStorage(const WriteOptions& options)
    : alignment(options.align.value_or(kCanonicalAlignment2)),
      zstd_level(options.zstd_level),
      digest(options.digest.value_or(DigestAlgorithm::xxh3)) {
  if (alignment < kLeastAlignment2 || alignment > kMostAlignment2 || !std::has_single_bit(alignment)) {
    throw Error(ErrorKind::bad_argument, fmt::format("align: expected a power of two from {} to {}, found {}",
                                                     kLeastAlignment2, kMostAlignment2, alignment));
  }
  if (zstd_level) require_zstd_level(*zstd_level);
  if (digest == DigestAlgorithm::crc32c)
    throw Error(ErrorKind::bad_argument, "zTensor 2 has the digests xxh3, sha256 and none, not crc32c");
}

WrittenBlobs write_blobs(const std::vector<StoredTensor>& tensors, const BlobStorage& storage,
                         const WriteOptions& options, Output& output) {
  ShardWriter heap(output, options);
  const std::vector<BlobPtr> blobs = list_part_blobs(tensors);
  BlobWriter writer(heap, storage, options.progress, blobs);
  SharedBlobs shared(tensors);
  const ReadAhead ahead(ReadAhead::list_blobs(blobs, [](const BlobPtr& blob) -> const Blob& { return *blob; }));
  std::size_t next = 0;
  WrittenBlobs written;
  written.references.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    auto& references = written.references.emplace_back();
    for (const StoredPart& part : tensor.parts) {
      const Blob& blob = ahead[next++];
      if (const BlobReference* same = shared.find(*part.blob)) {
        references.push_back(*same);
        writer.skip(tensor.name, *part.blob);
      } else {
        references.push_back(writer.write(tensor.name, blob));
        shared.add(*part.blob, references.back());
      }
    }
  }
  written.digests = writer.finish(output);
  written.shards = heap.finish();
  return written;
}

}  // namespace poise::ztensor
