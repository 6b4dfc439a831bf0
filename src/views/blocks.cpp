#include "views/blocks.hpp"

#include <algorithm>
#include <vector>

#include "tensor/block_layout.hpp"

namespace poise {
namespace {

constexpr std::size_t kElements = 8192;  // decoded at a time, about: they stay in the first cache

class BlockDecodedBlob final : public Blob {
 public:
  explicit BlockDecodedBlob(const Tensor& tensor)
      : type_(*tensor.layout.blocks()), blocks_(tensor.require("data").blob), elements_(tensor.elements()) {}

  std::uint64_t size() const override { return elements_ * sizeof(float); }
  bool seekable() const override { return blocks_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t block_size = type_.elements * sizeof(float);
    const std::size_t most = std::max<std::size_t>(1, kElements / type_.elements);
    std::vector<std::byte> stored;
    std::vector<float> numbers;
    while (!out.empty()) {
      const std::uint64_t first = offset / block_size;
      const auto skipped = static_cast<std::size_t>(offset % block_size);
      const std::size_t count =
          std::min(most, static_cast<std::size_t>((skipped + out.size() + block_size - 1) / block_size));
      const std::size_t made = std::min(out.size(), static_cast<std::size_t>(count * block_size) - skipped);
      numbers.resize(count * type_.elements);
      type_.decode(blocks_at(first, count, stored), count, numbers.data());
      std::copy_n(std::as_bytes(std::span(numbers)).begin() + static_cast<std::ptrdiff_t>(skipped), made, out.begin());
      offset += made;
      out = out.subspan(made);
    }
  }

 private:
  const std::byte* blocks_at(std::uint64_t first, std::size_t count, std::vector<std::byte>& copy) const {
    if (const auto mapped = blocks_->map()) return mapped->data() + first * type_.bytes;
    copy.resize(count * type_.bytes);
    blocks_->read(first * type_.bytes, copy);
    return copy.data();
  }

  const BlockType& type_;
  BlobPtr blocks_;
  std::uint64_t elements_;
};

}  // namespace

bool has_decoded_blocks(const Tensor& tensor) {
  return tensor.layout.blocks() != nullptr && tensor.layout.blocks()->decode != nullptr;
}

BlobPtr make_block_decoded_blob(const Tensor& tensor) {
  check_block_parts(tensor);
  return std::make_shared<BlockDecodedBlob>(tensor);
}

}  // namespace poise
