// Blob: a run of bytes that can be borrowed or copied.
//
// One interface for raw bytes of a file, compressed bytes, and bytes computed from other blobs (cast, quantized).
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

// A run of bytes of a source.
struct StoredRange {
  SourcePtr source;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  friend bool operator==(const StoredRange&, const StoredRange&) = default;
};

// A byte of a source.
struct StoredByte {
  SourcePtr source;
  std::uint64_t offset = 0;
};

// The source of a blob's bytes. Blobs of equal size and equal source are equal.
struct Stored : StoredRange {    // the stored bytes: after compression
  std::string encoding = "raw";  // "raw", "zstd", "zt.zstd-seekable/1", or the file's name of it
  unsigned swapped = 0;          // bytes of each number in reversed order; 0: none

  friend bool operator==(const Stored&, const Stored&) = default;
};

// Reads a blob from front to back.
class BlobStream {
 public:
  virtual ~BlobStream() = default;
  // Fills `out` from the current position; returns less only at the end.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Returns the best size of a read: a multiple of 16, so that elements stay whole.
  virtual std::size_t best_read() const { return 256 << 10; }
};

class Blob {
 public:
  virtual ~Blob() = default;

  virtual std::uint64_t size() const = 0;

  // Borrows all bytes; std::nullopt if they are compressed, computed, or not mapped. Valid while this
  // lives.
  virtual std::optional<std::span<const std::byte>> map() const { return std::nullopt; }

  // Copies decoded bytes [offset, offset + out.size()). Requires: the range is inside. Throws io, invalid_file (a
  // compressed or digested blob is broken) or unsupported (an unknown encoding).
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // Returns a stream over the whole blob: the only cheap way to read compressed blobs that cannot seek.
  virtual std::unique_ptr<BlobStream> stream() const;

  // Returns true when read() at any offset costs about as much as its bytes, so that many threads may share the work.
  virtual bool seekable() const { return true; }

  // Returns the size of units that are computed together: reads at multiples of it compute nothing twice.
  virtual std::uint64_t grain() const { return 1; }

  // Returns the place of these bytes in a source, if they are contiguous, so that the kernel can copy them.
  // std::nullopt for decoded and computed bytes.
  virtual std::optional<StoredRange> raw() const { return std::nullopt; }

  // Returns the bytes of a file behind this blob: a place for messages, and an identity for readers of shared bytes.
  // std::nullopt for computed bytes.
  virtual std::optional<Stored> stored() const;  // default: raw()

  // For messages: the place in a source of the number to which decoded byte `offset` belongs. std::nullopt if unknown,
  // as for compressed bytes. Requires: offset < size().
  virtual std::optional<StoredByte> stored_byte(std::uint64_t offset) const;  // default: by raw()

  // Returns false when the bytes cannot be decoded: size() is then a file's claim about an unknown encoding.
  virtual bool decodable() const { return true; }

 protected:
  Blob() = default;
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
};

using BlobPtr = std::shared_ptr<const Blob>;

// Bytes [offset, offset + length) of a source. Throws internal when the source has fewer.
BlobPtr make_source_blob(SourcePtr source, std::uint64_t offset, std::uint64_t length);

// Owned bytes.
BlobPtr make_memory_blob(std::vector<std::byte> bytes, std::string name);

// Stored bytes that cannot be decoded: they have a size and a place, and reading them throws unsupported with the
// reason
// ("the encoding "lz4" is not known to this version of Poise").
BlobPtr make_opaque_blob(Stored stored, std::uint64_t size, std::string reason);

// Bytes whose file is missing: reading them throws not_found.
BlobPtr make_missing_blob(std::uint64_t size, std::string reason);

// Returns a copy of all decoded bytes.
std::vector<std::byte> read_all(const Blob& blob);

}  // namespace poise
