// Blob: a run of bytes that can be borrowed or copied, wherever it comes from.
//
// Raw bytes of a file, compressed bytes, and bytes computed from other blobs (cast, quantized) all have this one face.
// `size()` and every offset count decoded bytes. Blobs are immutable and safe to read from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/source.hpp>

namespace poise {

// Where a blob's stored bytes lie.
struct Location {
  SourcePtr source;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;      // stored bytes: after compression
  std::string encoding = "raw";  // "raw", "zstd", "zt.zstd-seekable/1", or what the file calls it
};

// A blob read from front to back.
class BlobStream {
 public:
  virtual ~BlobStream() = default;
  // Fills `out` from the current position; returns less than asked for only at the end.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // How many bytes are best asked for at once: a multiple of 16, so that elements stay whole.
  virtual std::size_t best_read() const { return 256 << 10; }
};

class Blob {
 public:
  virtual ~Blob() = default;

  virtual std::uint64_t size() const = 0;

  // Borrows all bytes, or says it cannot (compressed, computed, or not mapped). Valid while this lives.
  virtual std::optional<std::span<const std::byte>> map() const { return std::nullopt; }

  // Copies decoded bytes [offset, offset + out.size()). Requires: the range lies in the blob. Throws io, invalid_file
  // (a compressed or digested blob is broken) or unsupported (its encoding is not known).
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // A stream over the whole blob. Compressed blobs that cannot seek are only cheap to read this way.
  virtual std::unique_ptr<BlobStream> stream() const;

  // True when read() at any offset costs about the bytes it copies, so that many threads may share the work.
  virtual bool seekable() const { return true; }

  virtual std::optional<Location> location() const { return std::nullopt; }

 protected:
  Blob() = default;
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
};

using BlobPtr = std::shared_ptr<const Blob>;

// Bytes [offset, offset + length) of a source as they stand. Requires: the range lies in the source.
BlobPtr make_source_blob(SourcePtr source, std::uint64_t offset, std::uint64_t length);

// Owned bytes.
BlobPtr make_memory_blob(std::vector<std::byte> bytes, std::string name);

// Stored bytes that cannot be decoded: they have a size and a place, and reading them throws unsupported with the reason
// ("the encoding "lz4" is not known to this version of Poise").
BlobPtr make_opaque_blob(Location location, std::uint64_t size, std::string reason);

// Bytes that should be there and are not (the file that holds them is absent): reading them throws not_found.
BlobPtr make_missing_blob(std::uint64_t size, std::string reason);

// A copy of all decoded bytes.
std::vector<std::byte> read_all(const Blob& blob);

}  // namespace poise
