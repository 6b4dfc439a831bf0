// Digest: what a file claims about the bytes of a part.
#pragma once

#include <cstdint>
#include <string>

namespace poise {

enum class DigestAlgorithm : std::uint8_t { none, sha256, crc32c, xxh3, unknown };

// What a file claims about a part's bytes.
struct Digest {
  DigestAlgorithm algorithm = DigestAlgorithm::unknown;
  std::string text;          // as the file spells it: "sha256:9f86..."
  bool over_stored = false;  // over the stored bytes (zTensor 1.x) rather than the decoded ones (zTensor 2)
};

}  // namespace poise
