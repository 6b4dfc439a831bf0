// Part digests: the text in which files write them, and the hasher each one needs.
//
//   sha256:<64 hexadecimal digits>    crc32c:0x<8 digits>    xxh3:<16 digits>
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <poise/blob.hpp>
#include <poise/digest.hpp>

#include "pack/digest.hpp"

namespace poise {

// "sha256", "crc32c", "xxh3"; empty for none and unknown.
std::string_view digest_name(DigestAlgorithm algorithm);

// The algorithm that a digest's text begins with; `unknown` for others.
DigestAlgorithm digest_algorithm(std::string_view text);

// Not none, and not unknown.
bool is_computable(DigestAlgorithm algorithm);

// Is the digest of a part with this blob that of the blob's own bytes, not of what is stored of them?
bool covers_content(const Blob& blob, const Digest& digest);

// The bytes that the digest of a part with this blob is of: the blob, or what is stored of it.
BlobPtr digested_blob(const BlobPtr& blob, const Digest& digest);

// Null for `none`. Throws internal for `unknown`.
std::unique_ptr<Hasher> make_hasher(DigestAlgorithm algorithm);

// The text for the digits that a hasher of that algorithm found, as Poise writes it.
std::string digest_text(DigestAlgorithm algorithm, std::string digits);

// Do two texts name the same digest? The case of the digits does not matter.
bool same_digest(std::string_view a, std::string_view b);

// A digest that a file says a blob has, checked while a scan shows the blob's bytes.
class DigestClaim {
 public:
  // Requires: the digest can be computed.
  DigestClaim(const BlobPtr& blob, Digest digest);

  // True if wrong() takes the SHA-256 of the blob from the scan.
  bool needs_sha256() const { return !stored_ && digest_.algorithm == DigestAlgorithm::sha256; }
  void see(std::span<const std::byte> bytes);
  // "the digest is xxh3:..., the file says xxh3:..."; nothing if it is the one that the file says. A digest of what is
  // stored of a compressed blob is computed here: throws what reading that throws. Called once. Requires: see() saw all
  // bytes.
  std::optional<std::string> wrong(std::string sha256);

 private:
  Digest digest_;
  BlobPtr stored_;                  // what the digest is of if these are not the blob's bytes
  std::unique_ptr<Hasher> hasher_;  // null: the scan's SHA-256 is the digest
};

}  // namespace poise
