// CRC-32C (Castagnoli), for zTensor 1.x digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "pack/digest.hpp"

namespace poise {

// The checksum of bytes followed by `bytes`, where `before` is the checksum of the former (0 for none).
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

std::unique_ptr<Hasher> make_crc32c();

}  // namespace poise
