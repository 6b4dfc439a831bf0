#include "views/flipped_signs.hpp"

namespace poise {
namespace {

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

 private:
  BlobPtr blob_;
};

}  // namespace

BlobPtr make_flipped_signs_blob(BlobPtr blob) { return std::make_shared<FlippedSigns>(std::move(blob)); }

}  // namespace poise
