#include "formats/gguf/plus_one.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "bytes/little_endian.hpp"

namespace poise::gguf {
namespace {

class PlusOne final : public Blob {
 public:
  PlusOne(BlobPtr floats, One one) : floats_(std::move(floats)), one_(one) {}

  std::uint64_t size() const override { return floats_->size(); }
  bool seekable() const override { return floats_->seekable(); }
  bool decodable() const override { return floats_->decodable(); }

  std::optional<Stored> stored() const override {
    auto stored = floats_->stored();
    if (stored) stored->encoding += one_ == One::added ? ", plus one" : ", less one";
    return stored;
  }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return floats_->stored_byte(offset); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<std::byte, 4096> buffer{};
    while (!out.empty()) {
      const auto skipped = static_cast<std::size_t>(offset % sizeof(float));
      const auto bytes = std::min(out.size(), buffer.size() - skipped);
      const auto floats =
          std::span(buffer).first((skipped + bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float));
      floats_->read(offset - skipped, floats);
      for (std::size_t i = 0; i < floats.size(); i += sizeof(float)) {
        store_le(floats.data() + i, load_le<float>(floats.data() + i) + (one_ == One::added ? 1.0F : -1.0F));
      }
      std::ranges::copy(floats.subspan(skipped, bytes), out.begin());
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

  One one() const { return one_; }
  const BlobPtr& original() const { return floats_; }

 private:
  BlobPtr floats_;
  One one_;
};

}  // namespace

HeldBlob plus_one(HeldBlob floats, One one) {
  if (const auto* before = dynamic_cast<const PlusOne*>(floats.get()); before != nullptr && before->one() != one)
    return before->original();
  return BlobPtr(std::make_shared<PlusOne>(std::move(floats), one));
}

}  // namespace poise::gguf
