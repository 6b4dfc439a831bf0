// MemoryRange: bytes in memory as what a ByteReader reads.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "bytes/byte_reader.hpp"

namespace poise::support {

class MemoryRange final : public ByteRange {
 public:
  explicit MemoryRange(std::string_view bytes) : bytes_(bytes) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  std::span<const std::byte> resident() const override { return std::as_bytes(std::span(bytes_)); }
  void fetch(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string bytes_;
  std::string name_ = "memory";
};

}  // namespace poise::support
