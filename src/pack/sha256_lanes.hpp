// SHA-256 (FIPS 180-4) of several messages at once, one in each vector lane. The steps of one message depend on each
// other; sixteen in parallel take little longer than one. OpenSSL hashes one at a time.
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
  // Sees the bytes in pieces and in order, while they are in the cache.
  std::function<void(std::span<const std::byte>)> look;
  // Gets the digest, 64 lower-case hexadecimal digits.
  std::function<void(std::string)> done;
};

// Hashes messages on the calling thread until next() returns none. Works on at most `most` messages, or as many as
// there are lanes, and asks for another when one ends. Throws what the functions throw.
void sha256_side_by_side(std::size_t most, const std::function<std::optional<Sha256Message>()>& next);

// Distributes blobs to hash, the longest first, to one thread for each processor. Thread-safe.
class HashOrder {
 public:
  explicit HashOrder(std::span<const std::uint64_t> lengths, std::size_t threads = processors());

  struct Item {
    std::size_t index = 0;
    bool alone = true;  // OpenSSL is faster than a lane

    // The bytes to hash in a lane; nothing where they are not in memory, or better hashed alone.
    std::optional<std::span<const std::byte>> side_by_side(const Blob& blob) const {
      return alone ? std::nullopt : blob.map();
    }
  };
  std::optional<Item> next();
  // Ends the work.
  void end() { next_ = items_.size(); }

  // How many lanes a thread should use to leave work for the others.
  std::size_t lanes() const { return (items_.size() + threads_ - 1) / threads_; }
  std::size_t threads() const { return threads_; }

  // True when lanes are faster: there are sixteen, and the processor has no SHA-256 instructions, which OpenSSL would
  // use.
  static bool has_lanes();

 private:
  static std::size_t processors();

  std::size_t threads_;
  std::vector<Item> items_;
  std::atomic<std::size_t> next_ = 0;
};

// Hashes, on all threads, the messages that `message` makes of an order's items. Several threads call it and the
// functions of different messages at once. It hashes an item itself when it returns no message.
void sha256_on_all_threads(HashOrder& order,
                           const std::function<std::optional<Sha256Message>(const HashOrder::Item&)>& message);

// The part of that which one thread does.
void sha256_share(HashOrder& order, const std::function<std::optional<Sha256Message>(const HashOrder::Item&)>& message);

}  // namespace poise
