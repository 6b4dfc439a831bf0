// WriterDigests: the digests of the parts that a writer writes, in the order in which it writes them.
//
// As a rule the writer's own bytes are hashed as they pass. An algorithm like SHA-256 has no shortcut and is slower than the disk,
// so there the digests are computed on all processors a little ahead of the writer, from the blobs themselves: each blob by one
// thread, many at a time, one batch while the writer is busy with the batch before. Only blobs that many threads may read at any
// place are read a second time for that. Memory: a chunk a thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

#include "io/digest.hpp"

namespace poise {

class WriterDigests {
 public:
  // Whether digests are of the blobs' bytes or of what becomes of them in the file, such as a compressed form.
  enum class Of { blobs, written };

  // The blobs come in the order in which they will be begun or skipped.
  WriterDigests(DigestAlgorithm algorithm, Of of, std::vector<BlobPtr> blobs);
  // What is being computed is given up.
  ~WriterDigests();

  // Turns to the next blob. The hasher has to see its bytes, or those written; null when nothing has to.
  Hasher* begin();
  // The digest's text, empty for DigestAlgorithm::none. Throws what reading this blob or one soon after it throws; then this can
  // only be destroyed. Requires: begin() was called.
  std::string end();
  // Passes over the next blob.
  void skip() { ++next_; }

 private:
  struct Batch;
  bool is_ahead(std::size_t index) const;
  void begin_batch();
  void finish_batch();

  DigestAlgorithm algorithm_;
  std::vector<BlobPtr> blobs_;
  std::size_t next_ = 0;
  std::unique_ptr<Hasher> hasher_;  // of the blob that is being written

  bool ahead_;
  std::vector<std::string> digests_;  // of those computed ahead
  std::size_t finished_ = 0;          // digests [0, finished_) are there
  std::unique_ptr<Batch> running_;
};

}  // namespace poise
