#include <poise/blob.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/read_fully.hpp"

namespace poise {
namespace {

class SourceBlob final : public Blob {
 public:
  SourceBlob(SourcePtr source, std::uint64_t offset, std::uint64_t length) : source_(std::move(source)), offset_(offset), length_(length) {
    if (offset > source_->size() || length > source_->size() - offset) {
      throw Error(ErrorKind::internal, fmt::format("blob of {} bytes outside its source of {}", length, source_->size()), source_->name(), offset);
    }
  }

  std::uint64_t size() const override { return length_; }
  std::optional<std::span<const std::byte>> map() const override {
    if (!source_->mapped()) return std::nullopt;
    return source_->bytes().subspan(offset_, length_);
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { source_->read(offset_ + offset, out); }
  std::optional<Location> location() const override { return Location{source_, offset_, length_, "raw"}; }

 private:
  SourcePtr source_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

class OpaqueBlob final : public Blob {
 public:
  OpaqueBlob(Location location, std::uint64_t size, std::string reason) : location_(std::move(location)), size_(size), reason_(std::move(reason)) {}

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override { throw Error(ErrorKind::unsupported, reason_, location_.source->name(), location_.offset); }
  std::optional<Location> location() const override { return location_; }

 private:
  Location location_;
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

// Reads any seekable blob from front to back.
class SeekingStream final : public BlobStream {
 public:
  explicit SeekingStream(const Blob& blob) : blob_(blob) {}
  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), blob_.size() - position_));
    if (count > 0) blob_.read(position_, out.first(count));
    position_ += count;
    return count;
  }

 private:
  const Blob& blob_;
  std::uint64_t position_ = 0;
};

}  // namespace

std::unique_ptr<BlobStream> Blob::stream() const { return std::make_unique<SeekingStream>(*this); }

BlobPtr make_source_blob(SourcePtr source, std::uint64_t offset, std::uint64_t length) {
  return std::make_shared<SourceBlob>(std::move(source), offset, length);
}

BlobPtr make_memory_blob(std::vector<std::byte> bytes, std::string name) {
  const std::uint64_t size = bytes.size();
  return make_source_blob(Source::from_memory(std::move(bytes), std::move(name)), 0, size);
}

BlobPtr make_opaque_blob(Location location, std::uint64_t size, std::string reason) {
  return std::make_shared<OpaqueBlob>(std::move(location), size, std::move(reason));
}

BlobPtr make_missing_blob(std::uint64_t size, std::string reason) { return std::make_shared<MissingBlob>(size, std::move(reason)); }

std::vector<std::byte> read_all(const Blob& blob) {
  std::vector<std::byte> bytes(blob.size());
  read_fully(*blob.stream(), bytes);
  return bytes;
}

}  // namespace poise
