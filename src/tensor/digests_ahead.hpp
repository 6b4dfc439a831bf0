// DigestsAhead: the digests of many blobs, computed on all processors a little ahead of where a writer is.
//
// A digest like SHA-256 has no shortcut and is slower than the disk, so a writer that hashed what it writes would wait for one
// processor. Here each blob is hashed by one thread, many at a time, from the blob itself: one batch while the writer is busy
// with the batch before. Memory: a chunk a thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

class DigestsAhead {
 public:
  // Begins with the first batch. The blobs come in the order in which they will be asked for.
  DigestsAhead(std::vector<BlobPtr> blobs, DigestAlgorithm algorithm);
  // What is being computed is given up.
  ~DigestsAhead();

  // The text of a blob's digest; the calling thread helps if it is not there yet. Throws what reading the blobs throws.
  // Requires: indices that never fall.
  const std::string& of(std::size_t index);

 private:
  struct Batch;
  void begin_next();

  std::vector<BlobPtr> blobs_;
  DigestAlgorithm algorithm_;
  std::vector<std::string> digests_;
  std::size_t finished_ = 0;  // digests [0, finished_) are there
  std::unique_ptr<Batch> running_;
};

// Is the algorithm so slow that it should not be computed in a writer's own thread?
bool worth_hashing_ahead(DigestAlgorithm algorithm);

}  // namespace poise
