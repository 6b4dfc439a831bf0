// zt.zstd-seekable/1: a part as independent zstd frames, with a table of their sizes at the end.
//
//   frames                       each holds the same number of bytes (at most 16 MiB) but the last, and has a checksum
//   u32 0x184D2A5E, u32 length   the table is a skippable frame
//   per frame                    u32 stored bytes, u32 content bytes, u32 checksum if the descriptor has bit 7
//   u32 frames, u8 descriptor    bit 7: the table has checksums; bits 0..6 are zero
//   u32 0x8F92EAB1
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/blob.hpp>

#include "io/meter.hpp"
#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

inline constexpr std::string_view kZstdSeekable = "zt.zstd-seekable/1";

// Stored bytes in that encoding that decode to `size` bytes. Reads and checks the table on first use.
BlobPtr make_zstd_seekable_blob(StoredRange place, std::uint64_t size);

// Compresses a blob into `sink` in that encoding: all threads make frames, a bounded number ahead of the ordered
// writer. `hasher` (may be null) sees the decoded bytes in order. Throws bad_argument for an invalid level.
void write_zstd_seekable(const Blob& blob, int level, Sink& sink, Meter& meter, std::string_view item, Hasher* hasher);

}  // namespace poise
