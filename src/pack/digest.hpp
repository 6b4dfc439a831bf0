// Digests of bytes: SHA-256 (OpenSSL) and XXH3-64 (xxHash).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace poise {

// A digest that grows by pieces.
class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  // Lower-case hexadecimal digits. Ends the hasher's life: it is called once.
  virtual std::string finish() = 0;
};

std::unique_ptr<Hasher> make_sha256();
std::unique_ptr<Hasher> make_xxh3();

// The whole at once.
std::string sha256_hex(std::span<const std::byte> bytes);
std::uint64_t xxh3_64(std::span<const std::byte> bytes);

}  // namespace poise
