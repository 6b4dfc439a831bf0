// Reads an exact number of bytes of a blob, or all of them, and limits how many bytes a reader decodes at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

namespace poise {

// Fills `out` with the stream's next bytes. Throws internal when there are fewer, since a blob's size must be right.
inline void read_fully(BlobStream& stream, std::span<std::byte> out) {
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t got = stream.read(out.subspan(done));
    if (got == 0)
      throw Error(ErrorKind::internal, fmt::format("a blob ended {} bytes before its size", out.size() - done));
    done += got;
  }
}

// Discards the next `count` bytes by reading them, since a stream cannot seek.
inline void discard_bytes(BlobStream& stream, std::uint64_t count) {
  constexpr std::uint64_t kPieceBytes = 256 << 10;
  std::vector<std::byte> piece(std::min(kPieceBytes, count));
  for (; count > 0; count -= piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), count));
    read_fully(stream, piece);
  }
}

// Returns how many bytes a reader may decode from `stored_bytes` and hold at once, for data that it needs whole:
// indices, words of codes, files in archives.
inline constexpr std::uint64_t compute_decoded_limit(std::uint64_t stored_bytes) {
  return (16 << 20) + 16 * stored_bytes;
}

// Holds all bytes of a blob, contiguous in memory. Borrows them, or copies them if the blob is not mapped. Throws the
// errors of reading them.
class WholeBlob {
 public:
  explicit WholeBlob(BlobPtr blob) : blob_(std::move(blob)) {
    if (const auto all = blob_->map()) {
      bytes_ = *all;
    } else {
      copy_ = read_all(*blob_);
      bytes_ = copy_;
    }
  }
  WholeBlob(const WholeBlob&) = delete;
  WholeBlob& operator=(const WholeBlob&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  BlobPtr blob_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

}  // namespace poise
