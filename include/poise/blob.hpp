// A Blob is a run of bytes that callers borrow or copy.
//
// It has one interface for raw bytes of a file, compressed bytes, and bytes computed from other blobs (cast,
// quantized). `size()` and every offset count decoded bytes. Blobs are immutable and safe to read from many threads.
//
//   const poise::BlobPtr& blob = tensor.parts[0].blob;
//   std::vector<std::byte> first(16);
//   blob->read(0, first);
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

// Names a run of bytes of a source.
struct StoredRange {
  SourcePtr source;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  friend bool operator==(const StoredRange&, const StoredRange&) = default;
};

// Names a byte of a source.
struct StoredByte {
  SourcePtr source;
  std::uint64_t offset = 0;
};

// Describes the bytes of a file behind a blob, as they are stored. Two blobs of equal size with equal `Stored` hold the
// same bytes.
struct Stored : StoredRange {
  // "raw", "zstd", "zt.zstd-seekable/1", or the file's name of another encoding. A blob that changes the decoded bytes
  // adds a description: "raw, big-endian".
  std::string encoding = "raw";
  unsigned swapped = 0;  // size of the numbers whose bytes the file has in reverse order; 0: none

  friend bool operator==(const Stored&, const Stored&) = default;
};

class Blob;

// Describes how a reader changed stored bytes. Kernels can use the stored bytes as they are, and writers need not undo
// the change.
struct StoredAs {
  enum class Change : std::uint8_t {
    rows_interleaved,  // the file alternates rows of a head's two halves; the blob has the first half, then the second
    one_added,         // the file has float32 numbers that are greater by 1
    transposed,        // the file has the columns of a matrix as rows
    codes,             // the file has codes of a few bits; the blob has them as float16 numbers
  };

  Change change = Change::transposed;
  std::shared_ptr<const Blob> blob = nullptr;  // the stored bytes
  std::uint64_t row_bytes = 0;                 // the bytes of a stored row; 0 if the change does not depend on rows
  std::uint64_t head_rows = 0;                 // for rows_interleaved: the number of rows of a head

  friend bool operator==(const StoredAs&, const StoredAs&) = default;
};

// Reads a blob from front to back. Only one thread at a time may use a stream.
class BlobStream {
 public:
  virtual ~BlobStream() = default;
  // Copies bytes from the current position to `out`, and returns their number. The number is less than out.size() only
  // at the end of the blob. Throws what Blob::read() throws.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Returns the best size of a read in bytes. Reads of this size keep elements whole.
  virtual std::size_t best_read() const { return 256 << 10; }
};

class Blob {
 public:
  virtual ~Blob() = default;

  // Returns the number of decoded bytes.
  virtual std::uint64_t size() const = 0;

  // Returns size() if it is known without decoding; else std::nullopt.
  virtual std::optional<std::uint64_t> stated_size() const { return size(); }

  // Borrows all bytes, which stay valid while the blob lives. Returns std::nullopt if they are compressed, computed, or
  // not mapped.
  virtual std::optional<std::span<const std::byte>> map() const { return std::nullopt; }

  // Copies decoded bytes [offset, offset + out.size()). Requires: the range is inside the blob. Throws io; invalid_file
  // (a compressed or digested blob is broken); unsupported (an unknown encoding, or numbers that a computed blob cannot
  // hold); not_found (the file is missing).
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // Returns a stream over the whole blob. Compressed blobs that cannot seek are cheap to read only in this way.
  virtual std::unique_ptr<BlobStream> stream() const;

  // Returns true if read() is equally fast at every offset, so that many threads may share the work.
  virtual bool seekable() const { return true; }

  // Returns the size, in bytes, of units that are computed together. Reads of whole units compute no byte twice.
  virtual std::uint64_t grain() const { return 1; }

  // Returns the place of these bytes in a source, if they are contiguous, so that the operating system can copy them;
  // std::nullopt for decoded and computed bytes.
  virtual std::optional<StoredRange> raw_range() const { return std::nullopt; }

  // Returns the place of the file's bytes behind this blob. Messages show the place, and readers of shared bytes
  // compare it. Returns std::nullopt if the file is missing, and for most computed bytes.
  virtual std::optional<Stored> stored() const;  // default: raw_range()

  // Returns how a reader changed the stored bytes; null if the bytes are as stored, or computed in another way. The
  // description belongs to the blob, so that a part with another blob does not keep it.
  virtual const StoredAs* stored_as() const { return nullptr; }

  // Returns the place in a source of the number that contains decoded byte `offset`, for messages. Returns std::nullopt
  // if the place is unknown, as for compressed bytes. Requires: offset < size().
  virtual std::optional<StoredByte> stored_byte(std::uint64_t offset) const;  // default: by raw_range()

  // Returns false if Poise does not know the encoding: size() is then what the file states, unchecked.
  virtual bool decodable() const { return true; }

 protected:
  Blob() = default;
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
};

using BlobPtr = std::shared_ptr<const Blob>;

// Returns the blob's stored_as() if it has that change, else null.
inline const StoredAs* find_change(const Blob& blob, StoredAs::Change change) {
  const StoredAs* const stored = blob.stored_as();
  return stored != nullptr && stored->change == change ? stored : nullptr;
}

// Returns a blob of bytes [offset, offset + length) of a source. Throws internal when the source has fewer.
BlobPtr make_source_blob(SourcePtr source, std::uint64_t offset, std::uint64_t length);

// Returns a blob that owns its bytes. Errors show `name` as the path.
BlobPtr make_memory_blob(std::vector<std::byte> bytes, std::string name);

// Returns a blob of stored bytes that cannot be decoded. It has a size and a place; reading it throws unsupported with
// the reason ("the encoding "lz4" is not known to this version of Poise").
BlobPtr make_opaque_blob(Stored stored, std::uint64_t size, std::string reason);

// Returns a blob whose file is missing: reading it throws not_found with the reason.
BlobPtr make_missing_blob(std::uint64_t size, std::string reason);

// Returns a copy of all decoded bytes. Throws what Blob::read() throws.
std::vector<std::byte> read_all(const Blob& blob);

}  // namespace poise
