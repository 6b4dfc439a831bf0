// SHA-256 (FIPS 180-4) of several messages at once, one in each lane of the processor's vectors. One message alone is a chain of steps
// that wait for each other; sixteen side by side take little longer than one. OpenSSL hashes one after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/blob.hpp>

namespace poise {

struct Sha256Message {
  std::span<const std::byte> bytes;
  // Sees the bytes piece by piece and in order, while they are in the cache.
  std::function<void(std::span<const std::byte>)> look;
  // Gets the digest, 64 lower-case hexadecimal digits.
  std::function<void(std::string)> done;
};

// The bytes of a blob, if they are at hand and several such are hashed faster side by side than one after the other: where
// vectors have 16 lanes.
std::optional<std::span<const std::byte>> side_by_side_bytes(const Blob& blob);
bool hashes_side_by_side();

// Hashes messages until next() has none, all on the calling thread. It asks for as many as there are lanes, and for another whenever one
// is done; the longest should come first. Throws what the functions throw.
void sha256_side_by_side(const std::function<std::optional<Sha256Message>()>& next);

// The same on all threads: next() is called by several at once, and so are the functions of different messages.
void sha256_on_all_threads(const std::function<std::optional<Sha256Message>()>& next);

// Gives out what is to be hashed, the longest first. Safe to use from many threads.
class HashOrder {
 public:
  explicit HashOrder(std::span<const std::uint64_t> lengths);

  struct Item {
    std::size_t index = 0;
    bool alone = false;  // so long that it is done sooner by OpenSSL than in a lane beside the rest
  };
  std::optional<Item> next();
  // There is nothing more from now on.
  void end() { next_ = items_.size(); }

 private:
  std::vector<Item> items_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace poise
