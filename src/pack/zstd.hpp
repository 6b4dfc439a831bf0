// Reads and writes parts that zstd has compressed, as one stream or as independent frames with a table.
//
// A compressed blob must decode to exactly the size that its file states, if it states one. A broken frame and bytes
// after the last frame are errors, too. Memory of a stream: the decoder's window.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <poise/blob.hpp>

#include "io/meter.hpp"
#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

// Makes a blob of stored bytes that are one or more zstd frames and decode to `size` bytes.
BlobPtr make_zstd_blob(StoredRange place, std::uint64_t size);

// Finds the decoded size of frames by decoding them, on first use, for all blobs that share the ZstdSize.
class ZstdSize;
std::shared_ptr<ZstdSize> make_zstd_size(StoredRange place);
// Makes a blob for files that do not state the size. `size` is the result of make_zstd_size() for the same place. A
// size above `limit` is an error. The blob's size() throws what decoding throws, and it has no stated_size().
BlobPtr make_zstd_blob_of_unknown_size(StoredRange place, std::uint64_t limit, std::shared_ptr<ZstdSize> size);

// Throws bad_argument unless 1 <= level <= 22.
void require_zstd_level(int level);

// Compresses blobs one at a time, and reuses memory.
class ZstdCompressor {
 public:
  explicit ZstdCompressor(int level);
  ~ZstdCompressor();

  // Compresses `size` bytes into `to` as one frame without content size. Blobs of 8 MiB or more use all threads, with a
  // bounded number of jobs ahead of the writer; the same blob gives the same frame on every machine. Requires: `to` and
  // the compressor outlive this, and only one Frame of a compressor exists at a time.
  class Frame final : public Sink {
   public:
    Frame(ZstdCompressor& compressor, Sink& to, std::uint64_t size);
    // Ends the frame. Callers call it once, after the last byte.
    void finish();

   protected:
    void do_write(std::span<const std::byte> bytes) override;

   private:
    ZstdCompressor& compressor_;
    Sink& to_;
  };

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// zt.zstd-seekable/1 stores a part as independent zstd frames, with a table of their sizes at the end.
//
//   frames                       each has a checksum; all hold the same number of content bytes (at most 16 MiB), but
//                                the last may hold fewer
//   u32 0x184D2A5E, u32 length   the table is a skippable frame
//   per frame                    u32 stored bytes, u32 content bytes, u32 checksum if the descriptor has bit 7
//   u32 frames, u8 descriptor    bit 7: the table has checksums; bits 0..6 are zero
//   u32 0x8F92EAB1

inline constexpr std::string_view kZstdSeekable = "zt.zstd-seekable/1";

// Makes a blob of stored bytes in that encoding that decode to `size` bytes. Reads and checks the table on first use.
BlobPtr make_zstd_seekable_blob(StoredRange place, std::uint64_t size);

// Compresses a blob into `sink` in that encoding. All threads make frames, up to a fixed number of frames ahead of
// the one that is written. `hasher` (may be null) gets the decoded bytes in order. `item` is the name for the meter.
// Throws bad_argument for an invalid level.
void write_zstd_seekable(const Blob& blob, int level, Sink& sink, Meter& meter, std::string_view item, Hasher* hasher);

}  // namespace poise
