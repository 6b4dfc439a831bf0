// Digest: what a file claims about the bytes of a part.
#pragma once

#include <cstdint>
#include <string>

namespace poise {

enum class DigestAlgorithm : std::uint8_t { none, sha256, crc32c, xxh3, unknown };

// A file's claim about a part's bytes.
struct Digest {
  DigestAlgorithm algorithm = DigestAlgorithm::unknown;
  std::string text;          // in the file's spelling: "sha256:9f86..."
  bool over_stored = false;  // of the stored bytes (zTensor 1.x) instead of the decoded ones (zTensor 2)

  friend bool operator==(const Digest&, const Digest&) = default;
};

}  // namespace poise
