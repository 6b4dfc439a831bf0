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
#include <type_traits>
#include <utility>
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

// What a blob's bytes are made from. Blobs of one size that are made from equal things are equal.
struct Stored : StoredRange {    // the stored bytes: after compression
  std::string encoding = "raw";  // "raw", "zstd", "zt.zstd-seekable/1", or what the file calls it
  unsigned swapped = 0;          // bytes of each number that are in the other order; 0: none

  friend bool operator==(const Stored&, const Stored&) = default;
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

  // Copies decoded bytes [offset, offset + out.size()). Requires: the range is in the blob. Throws io, invalid_file
  // (a compressed or digested blob is broken) or unsupported (its encoding is not known).
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // A stream over the whole blob. Compressed blobs that cannot seek are only cheap to read this way.
  virtual std::unique_ptr<BlobStream> stream() const;

  // True when read() at any offset costs about the bytes it copies, so that many threads may share the work.
  virtual bool seekable() const { return true; }

  // Bytes that are made together: reads that begin and end at multiples of it make nothing twice.
  virtual std::uint64_t grain() const { return 1; }

  // Where a source holds the very bytes, one after the other, so that the kernel can copy them. Nothing for bytes that
  // are decoded or computed.
  virtual std::optional<StoredRange> raw() const { return std::nullopt; }

  // What a file holds for this blob: its place for messages, its identity for what reads shared bytes once. Nothing for
  // computed bytes.
  virtual std::optional<Stored> stored() const;  // by default what raw() says

  // Where a source holds the number that decoded byte `offset` belongs to, for messages: its first byte there. Nothing
  // where that cannot be said, as of compressed bytes. Requires: offset < size().
  virtual std::optional<StoredByte> stored_byte(std::uint64_t offset) const;  // by default by what raw() says

  // False when no version of the bytes can be had: size() is what a file claims of an encoding that is not known.
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

// Bytes that should be there and are not (the file that holds them is absent): reading them throws not_found.
BlobPtr make_missing_blob(std::uint64_t size, std::string reason);

// Bytes of a source, as part of what holds them: takes no memory of its own.
class SourceBlob final : public Blob {
 public:
  // Throws internal when the source has fewer bytes.
  SourceBlob(SourcePtr source, std::uint64_t offset, std::uint64_t length);
  SourceBlob(const SourceBlob& other) : Blob(), place_(other.place_) {}
  SourceBlob(SourceBlob&& other) noexcept : Blob(), place_(std::move(other.place_)) {}
  SourceBlob& operator=(const SourceBlob& other) {
    place_ = other.place_;
    return *this;
  }
  SourceBlob& operator=(SourceBlob&& other) noexcept {
    place_ = std::move(other.place_);
    return *this;
  }

  std::uint64_t size() const override { return place_.length; }
  std::optional<std::span<const std::byte>> map() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::optional<StoredRange> raw() const override { return place_; }

 private:
  StoredRange place_;
};

// A blob where it belongs: bytes of a source in place, any other blob by pointer. What it points to is valid while this
// lives and is not assigned to; a BlobPtr made of it may outlive it.
class HeldBlob final : private Blob {
 public:
  HeldBlob() = default;  // holds none
  HeldBlob(SourceBlob blob);
  HeldBlob(BlobPtr blob) : owner_(std::move(blob)) {}
  template <typename Kind>
  requires std::is_base_of_v<Blob, Kind> HeldBlob(std::shared_ptr<Kind> blob) : HeldBlob(BlobPtr(std::move(blob))) {}
  HeldBlob(const HeldBlob& other) : Blob(), owner_(other.owner_), offset_(other.offset_), length_(other.length_) {}
  HeldBlob(HeldBlob&& other) noexcept
      : Blob(),
        owner_(std::move(other.owner_)),
        offset_(other.offset_),
        length_(std::exchange(other.length_, kByPointer)) {}
  HeldBlob& operator=(const HeldBlob& other) { return *this = HeldBlob(other); }
  HeldBlob& operator=(HeldBlob&& other) noexcept {
    owner_ = std::move(other.owner_);
    offset_ = other.offset_;
    length_ = std::exchange(other.length_, kByPointer);
    return *this;
  }

  const Blob* get() const { return is_in_place() ? this : static_cast<const Blob*>(owner_.get()); }
  const Blob& operator*() const { return *get(); }
  const Blob* operator->() const { return get(); }
  explicit operator bool() const { return owner_ != nullptr; }
  operator BlobPtr() const;

 private:
  static constexpr std::uint64_t kByPointer = UINT64_MAX;  // no source has as many bytes

  bool is_in_place() const { return length_ != kByPointer; }
  SourcePtr source() const { return std::static_pointer_cast<const Source>(owner_); }

  // In place only.
  std::uint64_t size() const override { return length_; }
  std::optional<std::span<const std::byte>> map() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::optional<StoredRange> raw() const override { return StoredRange{source(), offset_, length_}; }

  std::shared_ptr<const void> owner_;  // the source in place, else the blob
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = kByPointer;
};

// A copy of all decoded bytes.
std::vector<std::byte> read_all(const Blob& blob);

}  // namespace poise
