// SHA-256 (FIPS 180-4) of several messages at once, one in each lane of the processor's vectors. One message alone is a
// chain of steps that wait for each other; sixteen side by side take little longer than one. OpenSSL hashes one after
// the other.
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

// Hashes messages until next() has none, all on the calling thread. It asks for `most` of them, or as many as there are
// lanes, and for another whenever one is done. Throws what the functions throw.
void sha256_side_by_side(std::size_t most, const std::function<std::optional<Sha256Message>()>& next);

// Gives out what is to be hashed, the longest first, to as many threads as there are processors. Safe to use from many
// threads.
class HashOrder {
 public:
  explicit HashOrder(std::span<const std::uint64_t> lengths, std::size_t threads = processors());

  struct Item {
    std::size_t index = 0;
    bool alone = true;  // done sooner by OpenSSL than in a lane

    // The bytes to hash side by side with others; nothing where they are not at hand, or better hashed alone.
    std::optional<std::span<const std::byte>> side_by_side(const Blob& blob) const {
      return alone ? std::nullopt : blob.map();
    }
  };
  std::optional<Item> next();
  // There is nothing more from now on.
  void end() { next_ = items_.size(); }

  // How many lanes a thread should take, so that there is something left for the others.
  std::size_t lanes() const { return (items_.size() + threads_ - 1) / threads_; }
  std::size_t threads() const { return threads_; }

  // Whether lanes are worth it at all: there are sixteen, and the processor has no instructions for SHA-256, with which
  // OpenSSL is as fast.
  static bool has_lanes();

 private:
  static std::size_t processors();

  std::size_t threads_;
  std::vector<Item> items_;
  std::atomic<std::size_t> next_ = 0;
};

// Hashes on all threads what `message` makes of an order's items; it is called by several threads at once, and so are
// the functions of different messages. Items of which it makes nothing it has hashed itself.
void sha256_on_all_threads(HashOrder& order,
                           const std::function<std::optional<Sha256Message>(const HashOrder::Item&)>& message);

// One thread's share of that.
void sha256_share(HashOrder& order, const std::function<std::optional<Sha256Message>(const HashOrder::Item&)>& message);

}  // namespace poise
