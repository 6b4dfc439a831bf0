// CRC-32 of zip archives (the polynomial of IEEE 802.3), computed by libdeflate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pack/digest.hpp"

namespace poise {

class Crc32 final : public Hasher {
 public:
  void update(std::span<const std::byte> bytes) override;
  std::string finish() override;  // 8 digits
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace poise
