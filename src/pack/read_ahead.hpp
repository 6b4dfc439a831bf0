// ReadAhead: decodes the blobs that a writer will need next, on all threads, while it writes the one before.
//
// A deflated stream is decoded from its begin on one thread, so that a writer of one file after the other would use one
// processor. Here each thread decodes another blob. Memory: a window for each processor, and no more than the limit of
// all, whatever the blobs take and however many processors there are.
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
  // Returns the blobs of items, in their order: ReadAhead(list_blobs(tensors, [](const Tensor* tensor) -> const Blob& {
  // ...
  // })).
  template <typename Items, typename BlobOf>
  static std::vector<const Blob*> list_blobs(const Items& items, const BlobOf& blob_of) {
    std::vector<const Blob*> blobs;
    blobs.reserve(items.size());
    for (const auto& item : items) blobs.push_back(&blob_of(item));
    return blobs;
  }

  struct Limits {
    std::uint64_t window_bytes = std::uint64_t{64} << 20;  // for each thread
    std::uint64_t all_bytes = std::uint64_t{256} << 20;
    std::size_t threads = 0;  // 0: as many as processors
  };

  // Blobs in the order in which they will be streamed. Decodes ahead those that are not seekable; the others are read
  // as they are. Starts when the first of them is streamed. Requires: the blobs outlive this.
  explicit ReadAhead(std::vector<const Blob*> blobs) : ReadAhead(std::move(blobs), Limits()) {}
  ReadAhead(std::vector<const Blob*> blobs, Limits limits);
  // Cancels what is being decoded.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Returns a blob with the same bytes, whose first stream has been decoded ahead. Streams are read on one thread at a
  // time. The blob throws what the original throws when its bytes are asked for. It is valid while this lives.
  const Blob& operator[](std::size_t index) const;

 private:
  class Window;
  class AheadBlob;

  std::vector<const Blob*> blobs_;
  std::unique_ptr<Window> window_;                 // null: all blobs are seekable
  std::vector<std::unique_ptr<AheadBlob>> ahead_;  // for each blob; null: it is read as it is
};

}  // namespace poise
