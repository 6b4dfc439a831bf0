#include <poise/blob.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/read_fully.hpp"

namespace poise {
namespace {

class SourceBlob final : public Blob {
 public:
  SourceBlob(SourcePtr source, std::uint64_t offset, std::uint64_t length) : place_{std::move(source), offset, length} {
    const Source& all = *place_.source;
    if (offset > all.size() || length > all.size() - offset) {
      throw Error(ErrorKind::internal, fmt::format("blob of {} bytes outside its source of {}", length, all.size()),
                  all.name(), offset);
    }
  }

  std::uint64_t size() const override { return place_.length; }
  std::optional<std::span<const std::byte>> map() const override {
    if (!place_.source->mapped()) return std::nullopt;
    return place_.source->bytes().subspan(static_cast<std::size_t>(place_.offset),
                                          static_cast<std::size_t>(place_.length));
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    place_.source->read(place_.offset + offset, out);
  }
  std::optional<StoredRange> raw_range() const override { return place_; }

 private:
  StoredRange place_;
};

class OpaqueBlob final : public Blob {
 public:
  OpaqueBlob(Stored stored, std::uint64_t size, std::string reason)
      : stored_(std::move(stored)), size_(size), reason_(std::move(reason)) {}

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override {
    throw Error(ErrorKind::unsupported, reason_, stored_.source->name(), stored_.offset);
  }
  std::optional<Stored> stored() const override { return stored_; }
  bool decodable() const override { return false; }

 private:
  Stored stored_;
  std::uint64_t size_;
  std::string reason_;
};

class MissingBlob final : public Blob {
 public:
  MissingBlob(std::uint64_t size, std::string reason) : size_(size), reason_(std::move(reason)) {}

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override { throw Error(ErrorKind::not_found, reason_); }

 private:
  std::uint64_t size_;
  std::string reason_;
};

// Streams a seekable blob from front to back.
class SeekingStream final : public BlobStream {
 public:
  explicit SeekingStream(const Blob& blob) : blob_(blob) {}
  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = std::min<std::uint64_t>(out.size(), blob_.size() - position_);
    if (count > 0) blob_.read(position_, out.first(count));
    position_ += count;
    return count;
  }

 private:
  const Blob& blob_;
  std::uint64_t position_ = 0;
};

}  // namespace

std::optional<Stored> Blob::stored() const {
  auto place = raw_range();
  return place ? std::optional<Stored>(Stored{*std::move(place)}) : std::nullopt;
}

std::optional<StoredByte> Blob::stored_byte(std::uint64_t offset) const {
  auto place = raw_range();
  return place ? std::optional(StoredByte{std::move(place->source), place->offset + offset}) : std::nullopt;
}

std::unique_ptr<BlobStream> Blob::stream() const { return std::make_unique<SeekingStream>(*this); }

BlobPtr make_source_blob(SourcePtr source, std::uint64_t offset, std::uint64_t length) {
  return std::make_shared<SourceBlob>(std::move(source), offset, length);
}

BlobPtr make_memory_blob(std::vector<std::byte> bytes, std::string name) {
  const std::uint64_t size = bytes.size();
  return make_source_blob(Source::from_memory(std::move(bytes), std::move(name)), 0, size);
}

BlobPtr make_opaque_blob(Stored stored, std::uint64_t size, std::string reason) {
  return std::make_shared<OpaqueBlob>(std::move(stored), size, std::move(reason));
}

BlobPtr make_missing_blob(std::uint64_t size, std::string reason) {
  return std::make_shared<MissingBlob>(size, std::move(reason));
}

std::vector<std::byte> read_all(const Blob& blob) {
  std::vector<std::byte> bytes(blob.size());
  read_fully(*blob.stream(), bytes);
  return bytes;
}

}  // namespace poise
