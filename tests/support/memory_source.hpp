// MemorySource: bytes in memory as a source on the stack.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <poise/source.hpp>

namespace poise::support {

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::string_view bytes) : Source("memory", bytes.size()), bytes_(bytes) {}

  bool mapped() const override { return true; }
  std::span<const std::byte> bytes() const override { return std::as_bytes(std::span(bytes_)); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string bytes_;
};

}  // namespace poise::support
