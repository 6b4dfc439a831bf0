// WriterDigests computes the digests of parts from exactly the bytes that a writer writes.
//
// Most hashers get the bytes when the writer writes them. SHA-256 is slower than the disk, so other threads compute it:
// while the writer writes a batch of parts, they read the previous batch back from the unfinished file, which no one
// else can change. One thread reads each part. Memory: a chunk for each thread.
#pragma once

#include <algorithm>
#include <array>
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
  // Cancels the computation.
  ~WriterDigests();

  // Begins the next part. `sink` will get the digested bytes, from its current position on; callers pass null if they
  // write these bytes in another form, such as compressed. Returns the hasher to which the caller passes the digested
  // bytes; null if the caller need not pass them.
  Hasher* begin_part(Sink* sink);
  // Ends the part. Returns the index of its digest in the result of finish(). Throws io. Requires: begin_part() was
  // called. `is_here` is true if this process has written the part. Otherwise the text of the digest is empty.
  std::size_t end_part(bool is_here = true);
  // Returns the texts of all digests, in order; for DigestAlgorithm::none, all texts are empty. `output` adds the texts
  // of parts that other processes have written. Throws io. Callers call it last.
  std::vector<std::string> finish(Output& output);
  std::vector<std::string> finish();

 private:
  struct Batch;
  struct Written {
    Sink* file;
    std::uint64_t offset;
    std::uint64_t length;
    std::size_t digest;
  };
  void start_batch();
  void finish_batch();

  DigestAlgorithm algorithm_;
  std::vector<std::string> digests_;
  std::unique_ptr<Hasher> hasher_;  // the hasher of the current part
  Sink* file_ = nullptr;            // the file to read back from
  std::uint64_t begin_ = 0;         // where the part begins in that file
  std::vector<Written> waiting_;    // parts of the next batch
  std::uint64_t waiting_bytes_ = 0;
  std::unique_ptr<Batch> running_;
};

// Passes bytes on to another sink and to a hasher. Requires: both outlive this.
class HashingSink final : public Sink {
 public:
  // `is_here` is true if this process writes the parts that follow.
  HashingSink(Sink& to, Hasher& hasher, bool is_here = true) : to_(to), hasher_(hasher), is_here_(is_here) {}
  Sink* readable_sink() override { return to_.readable_sink(); }
  bool begin_part(std::uint64_t /*bytes*/) override { return is_here_; }

 protected:
  void do_write(std::span<const std::byte> bytes) override {
    hasher_.update(bytes);
    to_.write(bytes);
  }

  void do_pad(std::uint64_t count) override {
    static constexpr std::array<std::byte, 64 << 10> kZeros{};
    for (std::uint64_t left = count; left > 0;) {
      const auto piece = std::span<const std::byte>(kZeros).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(left, kZeros.size())));
      hasher_.update(piece);
      left -= piece.size();
    }
    to_.pad(count);
  }

  void do_skip(std::uint64_t count) override { to_.skip(count); }

 private:
  Sink& to_;
  Hasher& hasher_;
  bool is_here_;
};

}  // namespace poise
