// HashingSink: hands bytes on to another sink and shows each of them to a hasher on the way.
#pragma once

#include "io/digest.hpp"
#include "io/sink.hpp"

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

 private:
  Sink& to_;
  Hasher& hasher_;
};

}  // namespace poise
