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
  // Requires: the range is in the source, which outlives this.
  ManifestBytes(const Source& source, const ManifestRange& range) : source_(source), done_(range.begin) {
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

  // Everything before a position has been read: its mapped pages may leave memory, and can still be read.
  void done_before(std::uint64_t position) {
    if (!source_.mapped() || position - done_ < kPieceBytes) return;
    source_.done_with(done_, position - done_);
    done_ = position;
  }

 private:
  static constexpr std::uint64_t kPieceBytes = 256 << 10;

  const Source& source_;
  std::uint64_t done_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise::ztensor
