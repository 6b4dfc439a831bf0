#include "views/byte_swap.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr unsigned kWidestNumber = 8;

void reverse_each(std::span<std::byte> bytes, unsigned width) {
  for (; !bytes.empty(); bytes = bytes.subspan(width)) std::ranges::reverse(bytes.first(width));
}

class SwappedStream final : public BlobStream {
 public:
  SwappedStream(std::unique_ptr<BlobStream> stream, unsigned width) : stream_(std::move(stream)), width_(width) {}

  // Elements that a call's end would cut wait here in part.
  std::size_t read(std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      if (left_ == 0) {
        left_ = fill();
        if (left_ == 0) break;
      }
      const std::size_t count = std::min<std::size_t>(left_, out.size() - done);
      std::copy_n(element_.end() - left_, count, out.begin() + static_cast<std::ptrdiff_t>(done));
      left_ -= static_cast<unsigned>(count);
      done += count;
    }
    return done;
  }

 private:
  unsigned fill() {
    const auto element = std::span(element_).last(width_);
    if (stream_->read(element) < width_) return 0;
    std::ranges::reverse(element);
    return width_;
  }

  std::unique_ptr<BlobStream> stream_;
  unsigned width_;
  std::array<std::byte, kWidestNumber> element_{};  // its last `left_` bytes are still to be handed out
  unsigned left_ = 0;
};

class SwappedBlob final : public Blob {
 public:
  SwappedBlob(BlobPtr blob, unsigned width) : blob_(std::move(blob)), width_(width) {}

  std::uint64_t size() const override { return blob_->size(); }
  bool seekable() const override { return blob_->seekable(); }
  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<SwappedStream>(blob_->stream(), width_); }
  std::optional<Stored> stored() const override {
    auto at = blob_->stored();
    if (at) {
      at->encoding += ", big-endian";
      at->swapped = width_;
    }
    return at;
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const std::uint64_t begin = offset / width_ * width_;
    const std::uint64_t end = (offset + out.size() + width_ - 1) / width_ * width_;
    if (begin == offset && end == offset + out.size()) {
      blob_->read(offset, out);
      return reverse_each(out, width_);
    }
    std::vector<std::byte> whole(static_cast<std::size_t>(end - begin));
    blob_->read(begin, whole);
    reverse_each(whole, width_);
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(offset - begin), out.size(), out.begin());
  }

 private:
  BlobPtr blob_;
  unsigned width_;
};

}  // namespace

BlobPtr make_byte_swapped_blob(BlobPtr blob, DType dtype) {
  const unsigned bits = info(dtype).kind == DTypeKind::complex ? info(dtype).bits / 2 : info(dtype).bits;
  const unsigned width = bits / 8;
  if (width <= 1) return blob;
  return std::make_shared<SwappedBlob>(std::move(blob), width);
}

}  // namespace poise
