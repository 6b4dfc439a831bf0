// Parses, writes and checks the digests of parts. Their text in files is one of these:
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

// Returns "sha256", "crc32c", "xxh3"; empty for `none` and `unknown`.
std::string_view find_digest_name(DigestAlgorithm algorithm);

// Returns the algorithm that a digest's text begins with; `unknown` for other texts.
DigestAlgorithm parse_digest_algorithm(std::string_view text);

// Returns true for all but `none` and `unknown`.
bool is_computable(DigestAlgorithm algorithm);

// Returns true when the digest of a part with this blob covers the blob's bytes; false when it covers their stored
// form.
bool covers_content(const Blob& blob, const Digest& digest);

// Returns the bytes that the digest of a part with this blob covers: the blob, or its stored form.
BlobPtr find_digested_blob(const BlobPtr& blob, const Digest& digest);

// Makes a hasher; null for `none`. Throws internal for `unknown`.
std::unique_ptr<Hasher> make_hasher(DigestAlgorithm algorithm);

// Describes how Poise writes digests of an algorithm: the text before the digits, and the sixteen hexadecimal digits.
struct DigestSpelling {
  std::string_view begin;
  std::string_view digits;
};
constexpr DigestSpelling find_digest_spelling(DigestAlgorithm algorithm) {
  constexpr std::string_view kLower = "0123456789abcdef";
  switch (algorithm) {
    case DigestAlgorithm::sha256: return {"sha256:", kLower};
    case DigestAlgorithm::crc32c: return {"crc32c:0x", "0123456789ABCDEF"};
    case DigestAlgorithm::xxh3: return {"xxh3:", kLower};
    case DigestAlgorithm::none:
    case DigestAlgorithm::unknown: break;
  }
  return {":", kLower};
}

// Returns the text that Poise writes for the digits of a hasher of that algorithm.
std::string format_digest(DigestAlgorithm algorithm, std::string digits);

// Returns true when two texts spell the same digest, in upper or lower case.
bool is_same_digest(std::string_view a, std::string_view b);

// Checks the digest that a file states for a blob, while a scan passes the blob's bytes.
class DigestClaim {
 public:
  // Requires: is_computable(digest.algorithm).
  DigestClaim(const BlobPtr& blob, Digest digest);

  // Returns true if find_mismatch() needs the scan's SHA-256 of the blob.
  bool needs_sha256() const { return !stored_ && digest_.algorithm == DigestAlgorithm::sha256; }
  void update(std::span<const std::byte> bytes);
  // Returns "the digest is xxh3:..., the file states xxh3:..."; std::nullopt if they are equal. If the digest covers
  // the stored form of a compressed blob, reads and hashes that form, and throws what reading it throws. Callers call
  // it once. Requires: update() got all bytes.
  std::optional<std::string> find_mismatch(std::string sha256);

 private:
  Digest digest_;
  BlobPtr stored_;                  // the stored form, if the digest covers it; else null
  std::unique_ptr<Hasher> hasher_;  // null: the scan's SHA-256 is the digest
};

}  // namespace poise
