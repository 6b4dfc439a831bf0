// Computes digests of bytes: SHA-256, SHA-1 as git uses it (OpenSSL), XXH3-64 (xxHash), CRC-32 (libdeflate) and
// CRC-32C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace poise {

// Computes a digest piece by piece.
class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  // Returns lower-case hexadecimal digits. Callers call it once, at the end.
  virtual std::string finish() = 0;
};

std::unique_ptr<Hasher> make_sha256();
std::unique_ptr<Hasher> make_xxh3();
// Makes a hasher for the name that git gives to a file of that size: the SHA-1 of "blob SIZE", a zero byte and the
// file's bytes.
std::unique_ptr<Hasher> make_git_sha1(std::uint64_t size);

// Returns the SHA-256 in lower-case hexadecimal digits.
std::string compute_sha256(std::span<const std::byte> bytes);
std::uint64_t compute_xxh3(std::span<const std::byte> bytes);

// Computes the CRC-32 of zip archives (with the polynomial of IEEE 802.3).
class Crc32 final : public Hasher {
 public:
  void update(std::span<const std::byte> bytes) override;
  std::string finish() override;  // 8 digits
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0;
};

// Continues a CRC-32C (Castagnoli): `before` is the checksum of all bytes before `bytes` (0 if there are none).
std::uint32_t compute_crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

std::unique_ptr<Hasher> make_crc32c();

}  // namespace poise
