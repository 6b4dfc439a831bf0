// Decodes ggml's blocks when they are read.
#include <algorithm>
#include <vector>

#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

constexpr std::size_t kElements = 8192;  // decoded at a time, approximately; they fit the first-level cache

class BlockDecodedBlob final : public Blob {
 public:
  explicit BlockDecodedBlob(const Tensor& tensor)
      : type_(*block_type(tensor.layout)), blocks_(tensor.require("data").blob), elements_(tensor.elements()) {}

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

std::optional<TensorLayout> read_blocks(const Tensor&, std::string_view name) { return block_layout_named(name); }

// True for types with numbers.
bool has_numbers(const Tensor& tensor) { return block_type(tensor.layout)->decode != nullptr; }

BlobPtr block_elements(const Tensor& tensor) {
  check_block_parts(tensor);
  if (blocks_along(tensor.layout) == BlocksAlong::rows) return std::make_shared<BlockDecodedBlob>(tensor);
  return transposed(make_dense_tensor(transposed(tensor))).require("data").blob;
}

ValueRules block_rules(const Tensor& tensor, const Part& part) {
  ValueRules rules{part.dtype};
  if (part.role == "data" && has_numbers(tensor)) rules.blocks = block_type(tensor.layout);
  return rules;
}

std::string block_type_of(const Tensor& tensor) { return std::string(block_type(tensor.layout)->name); }

bool is_stored_as_blocks(const Tensor& tensor, const StoredType& type) {
  return block_type(type) == block_type(tensor.layout);
}

}  // namespace

const LayoutType layouts::blocks = {
    .name = "blocks",
    .quantized = true,
    .read = read_blocks,
    .check = check_block_parts,
    .value_rules = block_rules,
    .has_float_elements = has_numbers,
    .elements = block_elements,
    .stored_type = block_type_of,
    .is_stored_as = is_stored_as_blocks,
};

}  // namespace poise
