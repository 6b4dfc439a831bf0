// ManifestBytes: the bytes of a manifest in memory, borrowed from a mapped file or copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/source.hpp>

namespace poise::ztensor {

struct ManifestRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class ManifestBytes {
 public:
  // Requires: the range lies in the source, which outlives this.
  ManifestBytes(const Source& source, const ManifestRange& range) {
    const std::uint64_t length = range.end - range.begin;
    if (source.mapped()) {
      bytes_ = source.bytes().subspan(range.begin, length);
    } else {
      copy_.resize(length);
      source.read(range.begin, copy_);
      bytes_ = copy_;
    }
  }
  ManifestBytes(const ManifestBytes&) = delete;
  ManifestBytes& operator=(const ManifestBytes&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise::ztensor
