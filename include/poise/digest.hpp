// Digest holds a checksum that a file states for the bytes of a part, or for another file of the model.
//
//   if (const std::optional<poise::Digest>& digest = tensor.parts[0].digest) std::cout << digest->text << "\n";
#pragma once

#include <cstdint>
#include <string>

namespace poise {

enum class DigestAlgorithm : std::uint8_t { none, sha256, crc32c, xxh3, unknown };

struct Digest {
  DigestAlgorithm algorithm = DigestAlgorithm::unknown;
  std::string text;          // in the file's spelling: "sha256:9f86..."
  bool over_stored = false;  // covers the stored bytes (zTensor 1.x) instead of the decoded ones (zTensor 2)

  friend bool operator==(const Digest&, const Digest&) = default;
};

}  // namespace poise
