// WriterDigests: the digests of the parts that a writer writes, of exactly the bytes it writes.
//
// As a rule the writer's own bytes are hashed as they pass. An algorithm like SHA-256 has no shortcut and is slower
// than the disk, so there the bytes are read again from the file that is being written, which no one else can change,
// shortly after they are written: each part by one thread, many at a time, one batch while the writer is busy with the
// next. Memory: a chunk a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <poise/digest.hpp>

#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

class WriterDigests {
 public:
  explicit WriterDigests(DigestAlgorithm algorithm);
  // Gives up what is being computed.
  ~WriterDigests();

  // Turns to the next part. `sink` will get the bytes that the digest is of, from its position on; null when it gets
  // another form of them. The hasher has to see these bytes; null when nothing has to.
  Hasher* begin(Sink* sink);
  // The part is written. Returns the number of its digest: they count from 0. Throws io. Requires: begin() was called.
  std::size_t end();
  // The digests' texts by their numbers, empty for DigestAlgorithm::none. Throws io. Nothing can be begun afterwards.
  std::vector<std::string> finish();

 private:
  struct Batch;
  struct Written {
    ReadableSink* file;
    std::uint64_t offset;
    std::uint64_t length;
    std::size_t digest;
  };
  void start_batch();
  void finish_batch();

  DigestAlgorithm algorithm_;
  std::vector<std::string> digests_;
  std::unique_ptr<Hasher> hasher_;  // of the part that is being written
  ReadableSink* file_ = nullptr;    // that it is read from again
  std::uint64_t begin_ = 0;         // of the part in there
  std::vector<Written> waiting_;    // for their batch
  std::uint64_t waiting_bytes_ = 0;
  std::unique_ptr<Batch> running_;
};

}  // namespace poise
