#include "pack/crc32.hpp"

#include <libdeflate.h>

#include <fmt/format.h>

namespace poise {

void Crc32::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) value_ = libdeflate_crc32(value_, bytes.data(), bytes.size());
}

std::string Crc32::finish() { return fmt::format("{:08x}", value_); }

}  // namespace poise
