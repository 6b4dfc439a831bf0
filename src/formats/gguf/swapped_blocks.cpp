#include "formats/gguf/swapped_blocks.hpp"

#include <algorithm>
#include <vector>

namespace poise::gguf {
namespace {

constexpr std::size_t kBytes = 64 << 10;  // swapped at a time, approximately

class SwappedBlocks final : public Blob {
 public:
  SwappedBlocks(BlobPtr blocks, const BlockType& type) : blocks_(std::move(blocks)), type_(type) {}

  std::uint64_t size() const override { return blocks_->size(); }
  bool seekable() const override { return blocks_->seekable(); }
  std::optional<Stored> stored() const override {
    auto stored = blocks_->stored();
    if (stored) stored->encoding = "big-endian";
    return stored;
  }
  // The place of the whole block.
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    return blocks_->stored_byte(offset / type_.bytes * type_.bytes);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> blocks;
    while (!out.empty()) {
      const std::uint64_t begin = offset / type_.bytes * type_.bytes;
      const auto skipped = static_cast<std::size_t>(offset - begin);
      const std::size_t wanted = std::min(out.size() + skipped, kBytes);
      blocks.resize((wanted + type_.bytes - 1) / type_.bytes * type_.bytes);
      blocks_->read(begin, blocks);
      swap_blocks(type_, blocks);
      const std::size_t made = std::min(out.size(), blocks.size() - skipped);
      std::copy_n(blocks.begin() + static_cast<std::ptrdiff_t>(skipped), made, out.begin());
      offset += made;
      out = out.subspan(made);
    }
  }

 private:
  BlobPtr blocks_;
  const BlockType& type_;
};

}  // namespace

BlobPtr make_swapped_blocks(BlobPtr blob, const BlockType& type) {
  return BlobPtr(std::make_shared<SwappedBlocks>(std::move(blob), type));
}

}  // namespace poise::gguf
