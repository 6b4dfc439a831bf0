// HashingSink: passes bytes on to another sink and to a hasher.
#pragma once

#include <algorithm>
#include <array>

#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

// Requires: both outlive this.
class HashingSink final : public Sink {
 public:
  HashingSink(Sink& to, Hasher& hasher) : to_(to), hasher_(hasher) {}
  ReadableSink* readable() override { return to_.readable(); }

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

 private:
  Sink& to_;
  Hasher& hasher_;
};

}  // namespace poise
