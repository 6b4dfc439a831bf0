// Digests of bytes: SHA-256, and SHA-1 as git uses it (OpenSSL); XXH3-64 (xxHash).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace poise {

// An incremental digest.
class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  // Lower-case hexadecimal digits. Called once, at the end.
  virtual std::string finish() = 0;
};

std::unique_ptr<Hasher> make_sha256();
std::unique_ptr<Hasher> make_xxh3();
// The name that git gives to a file of that many bytes: the SHA-1 of "blob SIZE", a zero byte and its bytes.
std::unique_ptr<Hasher> make_git_sha1(std::uint64_t size);

// The SHA-256 of all bytes.
std::string sha256_hex(std::span<const std::byte> bytes);
std::uint64_t xxh3_64(std::span<const std::byte> bytes);

}  // namespace poise
