#include "views/raised_integers.hpp"

#include <algorithm>
#include <array>

#include "bytes/little_endian.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kIntegerBytes = sizeof(std::int64_t);

class RaisedIntegers final : public Blob {
 public:
  RaisedIntegers(BlobPtr integers, std::int64_t addend)
      : integers_(std::move(integers)), addend_(static_cast<std::uint64_t>(addend)) {}

  std::uint64_t size() const override { return integers_->size(); }
  bool seekable() const override { return integers_->seekable(); }
  std::uint64_t grain() const override { return kIntegerBytes; }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return integers_->stored_byte(offset); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::byte, 512 * kIntegerBytes> some;
    while (!out.empty()) {
      const auto skipped = static_cast<std::size_t>(offset % kIntegerBytes);
      const std::size_t wanted = std::min(out.size(), some.size() - skipped);
      const std::size_t whole = (skipped + wanted + kIntegerBytes - 1) / kIntegerBytes * kIntegerBytes;
      const auto integers = std::span(some).first(whole);
      integers_->read(offset - skipped, integers);
      for (std::size_t at = 0; at < whole; at += kIntegerBytes)
        store_le(&integers[at], load_le<std::uint64_t>(&integers[at]) + addend_);
      std::ranges::copy(integers.subspan(skipped, wanted), out.begin());
      offset += wanted;
      out = out.subspan(wanted);
    }
  }

 private:
  BlobPtr integers_;
  std::uint64_t addend_;
};

}  // namespace

BlobPtr make_raised_integers_blob(BlobPtr integers, std::int64_t addend) {
  if (addend == 0) return integers;
  return std::make_shared<RaisedIntegers>(std::move(integers), addend);
}

}  // namespace poise
