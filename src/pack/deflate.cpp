// Decodes deflate (RFC 1951) with zlib, as a stream.
#include "pack/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "io/read_fully.hpp"
#include "pack/digest.hpp"

namespace poise {
namespace {

constexpr std::size_t kDeflatedBytes = 256 << 10;

class InflateStream final : public BlobStream {
 public:
  InflateStream(const StoredRange& place, std::uint64_t size, std::uint32_t crc32)
      : at_(place), size_(size), expected_crc32_(crc32) {
    if (inflateInit2(&zlib_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~InflateStream() override { inflateEnd(&zlib_); }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  std::size_t read(std::span<std::byte> out) override {
    const auto wanted = out.first(std::min<std::uint64_t>(out.size(), size_ - position_));
    const std::size_t got = inflate_into(wanted);
    crc32_.update(wanted.first(got));
    position_ += got;
    if (got < wanted.size()) fail(fmt::format("it decodes to {} bytes, {} expected", position_, size_));
    if (position_ == size_ && !ended_) require_end();
    return got;
  }

  std::uint64_t position() const { return position_; }

 private:
  // Fills `out`, or a part of it if the stream ends. Returns the number of bytes.
  std::size_t inflate_into(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && !at_end_) {
      if (zlib_.avail_in == 0) fill_input();
      const auto room = std::min<std::size_t>(out.size() - done, std::numeric_limits<uInt>::max());
      zlib_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      zlib_.avail_out = static_cast<uInt>(room);
      const int code = inflate(&zlib_, Z_NO_FLUSH);
      done += room - zlib_.avail_out;
      if (code == Z_STREAM_END) at_end_ = true;
      if (code == Z_MEM_ERROR) throw std::bad_alloc();
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        fail(zlib_.msg != nullptr ? zlib_.msg : "the stream is broken");
      if (code != Z_STREAM_END && zlib_.avail_in == 0 && consumed_ == at_.length && zlib_.avail_out > 0)
        fail("the stream is cut off");
    }
    return done;
  }

  void fill_input() {
    const auto count = std::min<std::uint64_t>(kDeflatedBytes, at_.length - consumed_);
    buffer_.resize(kDeflatedBytes);
    at_.source->read(at_.offset + consumed_, std::span(buffer_).first(count));
    consumed_ += count;
    zlib_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    zlib_.avail_in = static_cast<uInt>(count);
  }

  void require_end() {
    ended_ = true;
    std::byte extra{};
    if (inflate_into(std::span(&extra, 1)) != 0) fail(fmt::format("it decodes to more than {} bytes", size_));
    if (zlib_.avail_in > 0 || consumed_ < at_.length) fail("there are bytes after the end of the stream");
    if (crc32_.value() != expected_crc32_)
      fail(fmt::format("the CRC-32 is {:08x}, the file states {:08x}", crc32_.value(), expected_crc32_));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, "deflate: " + problem, at_.source->name(), at_.offset);
  }

  StoredRange at_;
  std::uint64_t size_;
  std::uint32_t expected_crc32_;
  Crc32 crc32_;
  z_stream zlib_{};
  std::vector<std::byte> buffer_;
  std::uint64_t consumed_ = 0;  // stored bytes handed to zlib
  std::uint64_t position_ = 0;
  bool at_end_ = false;  // zlib has reached the end of the stream
  bool ended_ = false;   // require_end() has checked the end
};

class DeflatedBlob final : public Blob {
 public:
  DeflatedBlob(StoredRange place, std::uint64_t size, std::uint32_t crc32, std::uint64_t skip)
      : place_(std::move(place)), size_(size), crc32_(crc32), skip_(skip) {}

  std::uint64_t size() const override { return size_ - skip_; }
  bool seekable() const override { return false; }
  std::optional<Stored> stored() const override {
    return Stored{place_, skip_ == 0 ? "deflate" : fmt::format("deflate+{}", skip_)};
  }
  std::unique_ptr<BlobStream> stream() const override {
    auto stream = start_stream();
    discard_bytes(*stream, skip_);
    return stream;
  }

  // Continues where the last read stopped, if possible. ZstdBlob::read() gives the reason.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(last_mutex_);
    std::unique_ptr<InflateStream> from = std::move(last_);
    if (!from || from->position() > skip_ + offset) from = start_stream();
    discard_bytes(*from, skip_ + offset - from->position());
    from->read(out);
    if (from->position() < size_) last_ = std::move(from);
  }

 private:
  std::unique_ptr<InflateStream> start_stream() const { return std::make_unique<InflateStream>(place_, size_, crc32_); }

  StoredRange place_;
  std::uint64_t size_;
  std::uint32_t crc32_;
  std::uint64_t skip_;
  mutable std::mutex last_mutex_;
  mutable std::unique_ptr<InflateStream> last_;
};

}  // namespace

std::uint64_t compute_inflated_limit(std::uint64_t deflated_bytes) {
  constexpr std::uint64_t kMostRatio = 1032;
  return checked_mul(deflated_bytes, kMostRatio).value_or(UINT64_MAX);
}

BlobPtr make_deflated_blob(StoredRange place, std::uint64_t size, std::uint32_t crc32, std::uint64_t skip) {
  return std::make_shared<DeflatedBlob>(std::move(place), size, crc32, skip);
}

}  // namespace poise
