// A ReadAhead decodes the blobs that a writer needs next, on all threads, while the writer writes the current one.
//
// A deflated stream can only be decoded from its beginning, on one thread: a writer that reads one blob after the other
// would use one processor. Here each thread decodes a different blob. Memory: 64 MiB for each thread, but at most
// 256 MiB for all (see Limits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <poise/blob.hpp>

namespace poise {

class ReadAhead {
 public:
  // Returns blob_of(item) for each item, in their order.
  template <typename Items, typename BlobOf>
  static std::vector<const Blob*> list_blobs(const Items& items, const BlobOf& blob_of) {
    std::vector<const Blob*> blobs;
    blobs.reserve(items.size());
    for (const auto& item : items) blobs.push_back(&blob_of(item));
    return blobs;
  }

  struct Limits {
    std::uint64_t window_bytes = std::uint64_t{64} << 20;  // the memory of each thread
    std::uint64_t all_bytes = std::uint64_t{256} << 20;
    std::size_t threads = 0;  // 0: as many as processors
  };

  // `blobs` are in the order in which they will be streamed. Decodes ahead the blobs that are not seekable, from the
  // first time that one of these is streamed, and reads the others directly. Requires: the blobs outlive this.
  explicit ReadAhead(std::vector<const Blob*> blobs) : ReadAhead(std::move(blobs), Limits()) {}
  ReadAhead(std::vector<const Blob*> blobs, Limits limits);
  // Cancels the decoding.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Returns a blob with the same bytes, whose first stream is decoded ahead. Only one thread at a time may read
  // streams. Reading the blob throws what the original throws. The blob is valid while this exists.
  const Blob& operator[](std::size_t index) const;

 private:
  class Window;
  class AheadBlob;

  std::vector<const Blob*> blobs_;
  std::unique_ptr<Window> window_;                 // null: all blobs are seekable
  std::vector<std::unique_ptr<AheadBlob>> ahead_;  // one for each blob; null if the blob is read directly
};

}  // namespace poise
