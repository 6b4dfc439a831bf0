// Digest: what a file claims about the bytes of a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace poise {

enum class DigestAlgorithm : std::uint8_t { none, sha256, crc32c, xxh3, unknown };

// What a file claims about a part's bytes.
struct Digest {
  DigestAlgorithm algorithm = DigestAlgorithm::unknown;
  std::string text;          // in the file's spelling: "sha256:9f86..."
  bool over_stored = false;  // of the stored bytes (zTensor 1.x) instead of the decoded ones (zTensor 2)
};

// An optional digest in the size of a pointer: a large model has a hundred thousand. Copies share their data, in any
// thread.
class HeldDigest {
 public:
  HeldDigest() noexcept = default;  // empty
  HeldDigest(const Digest& digest) : HeldDigest(digest.algorithm, digest.text, digest.over_stored) {}
  HeldDigest(DigestAlgorithm algorithm, std::string_view text, bool over_stored);
  HeldDigest(const HeldDigest& other) noexcept;
  HeldDigest(HeldDigest&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  HeldDigest& operator=(HeldDigest other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~HeldDigest() { reset(); }

  bool has_value() const { return at_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  void reset() noexcept;

  // Everything below requires a digest. Unpacks it on demand.
  Digest operator*() const;
  std::string text() const { return (**this).text; }
  DigestAlgorithm algorithm() const;
  bool over_stored() const;
  // Equal for digests of the same algorithm and text over the same bytes.
  std::span<const std::byte> packed() const;

 private:
  const std::byte* at_ = nullptr;  // in a shared slab
};

}  // namespace poise
