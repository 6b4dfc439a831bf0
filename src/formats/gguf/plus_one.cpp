#include "formats/gguf/plus_one.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "bytes/little_endian.hpp"

namespace poise::gguf {
namespace {

class PlusOne final : public Blob {
 public:
  PlusOne(BlobPtr floats, UnitShift shift) : floats_(std::move(floats)), shift_(shift) {}

  std::uint64_t size() const override { return floats_->size(); }
  bool seekable() const override { return floats_->seekable(); }
  bool decodable() const override { return floats_->decodable(); }

  std::optional<Stored> stored() const override {
    auto stored = floats_->stored();
    if (stored) stored->encoding += shift_ == UnitShift::added ? ", plus one" : ", less one";
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
        store_le(floats.data() + i, load_le<float>(floats.data() + i) + (shift_ == UnitShift::added ? 1.0F : -1.0F));
      }
      std::ranges::copy(floats.subspan(skipped, bytes), out.begin());
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

  UnitShift shift() const { return shift_; }
  const BlobPtr& original() const { return floats_; }

 private:
  BlobPtr floats_;
  UnitShift shift_;
};

}  // namespace

BlobPtr plus_one(BlobPtr floats, UnitShift shift) {
  if (const auto* before = dynamic_cast<const PlusOne*>(floats.get()); before != nullptr && before->shift() != shift)
    return before->original();
  return BlobPtr(std::make_shared<PlusOne>(std::move(floats), shift));
}

}  // namespace poise::gguf
