#include "views/integer_blobs.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "views/computed_blob.hpp"

namespace poise {
namespace {

std::uint16_t swap_bytes(std::uint16_t number) { return __builtin_bswap16(number); }
std::uint32_t swap_bytes(std::uint32_t number) { return __builtin_bswap32(number); }
std::uint64_t swap_bytes(std::uint64_t number) { return __builtin_bswap64(number); }

template <typename Number>
void reverse_numbers(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Number)) {
    Number number;
    std::memcpy(&number, &bytes[i], sizeof number);
    number = swap_bytes(number);
    std::memcpy(&bytes[i], &number, sizeof number);
  }
}

}  // namespace

void reverse_each_number(std::span<std::byte> bytes, unsigned width) {
  switch (width) {
    case 2: return reverse_numbers<std::uint16_t>(bytes);
    case 4: return reverse_numbers<std::uint32_t>(bytes);
    case 8: return reverse_numbers<std::uint64_t>(bytes);
    default:
      for (; !bytes.empty(); bytes = bytes.subspan(width)) std::ranges::reverse(bytes.first(width));
  }
}

namespace {

// Streams numbers with their bytes reversed. Blobs that are not seekable need it.
class SwappedStream final : public BlobStream {
 public:
  SwappedStream(std::unique_ptr<BlobStream> stream, unsigned width)
      : stream_(std::move(stream)), width_(width), number_(width) {}

  std::size_t best_read() const override { return stream_->best_read() / width_ * width_; }

  // Reads reversed numbers. If a call returns only some bytes of a number, the next call returns the others.
  std::size_t read(std::span<std::byte> out) override {
    std::size_t done = copy_remaining(out);
    if (const auto whole = out.subspan(done, (out.size() - done) / width_ * width_); !whole.empty()) {
      const std::size_t got = read_until_full(whole);
      reverse_each_number(whole.first(got / width_ * width_), width_);
      done += got;
    }
    if (done < out.size() && read_until_full(number_) == width_) {
      reverse_each_number(number_, width_);
      left_ = width_;
      done += copy_remaining(out.subspan(done));
    }
    return done;
  }

 private:
  std::size_t copy_remaining(std::span<std::byte> out) {
    const std::size_t count = std::min<std::size_t>(left_, out.size());
    std::copy_n(number_.end() - left_, count, out.begin());
    left_ -= static_cast<unsigned>(count);
    return count;
  }

  // Fills `out` as far as the stream has bytes; returns how many.
  std::size_t read_until_full(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
      const std::size_t got = stream_->read(out.subspan(done));
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  std::unique_ptr<BlobStream> stream_;
  unsigned width_;
  std::vector<std::byte> number_;  // the current number; its last `left_` bytes have not been read yet
  unsigned left_ = 0;
};

class SwappedBlob final : public Blob {
 public:
  SwappedBlob(BlobPtr blob, unsigned width) : blob_(std::move(blob)), width_(width) {}

  std::uint64_t size() const override { return blob_->size(); }
  bool seekable() const override { return blob_->seekable(); }
  std::unique_ptr<BlobStream> stream() const override {
    return std::make_unique<SwappedStream>(blob_->stream(), width_);
  }
  std::optional<Stored> stored() const override {
    auto at = blob_->stored();
    if (at) {
      at->encoding += ", big-endian";
      at->swapped = width_;
    }
    return at;
  }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    return blob_->stored_byte(offset / width_ * width_);
  }
  bool decodable() const override { return blob_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const std::uint64_t begin = offset / width_ * width_;
    const std::uint64_t end = (offset + out.size() + width_ - 1) / width_ * width_;
    if (begin == offset && end == offset + out.size()) {
      blob_->read(offset, out);
      return reverse_each_number(out, width_);
    }
    std::vector<std::byte> whole(static_cast<std::size_t>(end - begin));
    blob_->read(begin, whole);
    reverse_each_number(whole, width_);
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(offset - begin), out.size(), out.begin());
  }

 private:
  BlobPtr blob_;
  unsigned width_;
};

class FlippedSigns final : public Blob {
 public:
  explicit FlippedSigns(BlobPtr blob) : blob_(std::move(blob)) {}

  std::uint64_t size() const override { return blob_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    blob_->read(offset, out);
    for (std::byte& byte : out) byte ^= std::byte{0x80};
  }
  bool seekable() const override { return blob_->seekable(); }
  std::uint64_t grain() const override { return blob_->grain(); }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return blob_->stored_byte(offset); }
  bool decodable() const override { return blob_->decodable(); }

 private:
  BlobPtr blob_;
};

constexpr std::uint64_t kIntegerBytes = sizeof(std::int64_t);

class RaisedIntegers final : public Blob {
 public:
  RaisedIntegers(BlobPtr integers, std::int64_t addend)
      : integers_(std::move(integers)), addend_(static_cast<std::uint64_t>(addend)) {}

  std::uint64_t size() const override { return integers_->size(); }
  bool seekable() const override { return integers_->seekable(); }
  std::uint64_t grain() const override { return kIntegerBytes; }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return integers_->stored_byte(offset); }
  bool decodable() const override { return integers_->decodable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::uint64_t, 512> integers;
    read_units(offset, out, kIntegerBytes, integers.size(), [&](std::uint64_t first, std::size_t count) {
      const auto some = std::span(integers).first(count);
      integers_->read(first * kIntegerBytes, std::as_writable_bytes(some));
      for (std::uint64_t& integer : some) integer += addend_;
      return std::as_bytes(some);
    });
  }

 private:
  BlobPtr integers_;
  std::uint64_t addend_;
};

}  // namespace

unsigned get_number_bytes(DType dtype) {
  return (info(dtype).kind == DTypeKind::complex ? info(dtype).bits / 2 : info(dtype).bits) / 8;
}

BlobPtr make_byte_swapped_blob(BlobPtr blob, unsigned width) {
  if (width <= 1) return blob;
  return std::make_shared<SwappedBlob>(std::move(blob), width);
}

BlobPtr make_flipped_signs_blob(BlobPtr blob) { return std::make_shared<FlippedSigns>(std::move(blob)); }

BlobPtr make_raised_integers_blob(BlobPtr integers, std::int64_t addend) {
  if (addend == 0) return integers;
  return std::make_shared<RaisedIntegers>(std::move(integers), addend);
}

}  // namespace poise
