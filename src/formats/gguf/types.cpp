#include "formats/gguf/types.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include <fmt/format.h>

#include <poise/dtype.hpp>
#include <poise/tensor.hpp>

#include "bytes/checked.hpp"
#include "views/computed_blob.hpp"

namespace poise::gguf {

std::string_view find_type_name(std::uint32_t type) {
  if (const auto dtype = find_spelled_dtype(kSpellings, type)) return info(*dtype).name;
  const BlockType* blocks = find_numbered_block_type(type);
  return blocks == nullptr ? std::string_view() : blocks->name;
}

std::optional<std::uint64_t> count_stored_bytes(std::uint32_t type, std::uint64_t elements) {
  if (const auto dtype = find_spelled_dtype(kSpellings, type)) return packed_bytes(*dtype, elements);
  const BlockType* blocks = find_numbered_block_type(type);
  return blocks == nullptr ? std::nullopt : checked_mul(elements / blocks->elements, blocks->bytes);
}

namespace {

constexpr std::string_view kUnknown = "llama_ftype ";

// Describes a recipe: if most weights of the layers have type `most`, and a tensor whose name contains `name` has type
// `type`, the file type is `file_type`. The first match counts.
struct Variant {
  std::uint32_t most;
  std::string_view name;
  std::uint32_t type;
  std::uint32_t file_type;
};
constexpr std::array kVariants = std::to_array<Variant>({
    {12, "blk.", 14, 15},         // Q4_K with some Q6_K: Q4_K_M
    {12, "blk.", 13, 14},         // Q4_K with some Q5_K: Q4_K_S
    {13, "blk.", 14, 17},         // Q5_K with some Q6_K: Q5_K_M
    {13, "", 14, 16},             // Q5_K, an output matrix of Q6_K: Q5_K_S
    {11, "attn_output", 13, 13},  // Q3_K, attention's output of Q5_K: Q3_K_L
    {11, "attn_output", 12, 12},  // ... of Q4_K: Q3_K_M
    {11, "", 14, 11},             // Q3_K, an output matrix of Q6_K: Q3_K_S
});

// Guesses the file type by the type of most weights in the layers, because an embedding or an output matrix of another
// type may have more of them.
std::optional<std::uint32_t> guess_file_type(std::span<const TypedMatrix> matrices) {
  std::map<std::uint32_t, std::uint64_t> elements;
  const auto add_elements = [&](auto is_counted) {
    for (const TypedMatrix& matrix : matrices) {
      if (is_counted(matrix)) elements[matrix.type] += matrix.elements;
    }
  };
  add_elements([](const TypedMatrix& matrix) { return matrix.name.starts_with("blk."); });
  if (elements.empty()) add_elements([](const TypedMatrix&) { return true; });
  const auto most = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  if (most == elements.end()) return 0;
  for (const Variant& variant : kVariants) {
    const auto fits = [&](const TypedMatrix& matrix) {
      return matrix.type == variant.type && matrix.name.find(variant.name) != std::string_view::npos;
    };
    if (variant.most == most->first && std::ranges::any_of(matrices, fits)) return variant.file_type;
  }
  const auto* row = std::ranges::find(kFileTypes, most->first, &FileType::type);
  return row == kFileTypes.end() ? std::nullopt : std::optional(row->number);
}

}  // namespace

std::string find_file_type_name(std::uint32_t number) {
  const auto* row = std::ranges::find(kFileTypes, number, &FileType::number);
  return row != kFileTypes.end() ? std::string(row->name) : fmt::format("{}{}", kUnknown, number);
}

std::optional<std::uint32_t> find_file_type(std::span<const TypedMatrix> matrices, std::string_view recipe) {
  // The names of Poise's own recipes end in this, after the name of a type.
  constexpr std::string_view kMix = ":mix";
  const std::string_view name = recipe.ends_with(kMix) ? recipe.substr(0, recipe.size() - kMix.size()) : recipe;
  const auto* row = std::ranges::find(kFileTypes, name, &FileType::name);
  if (row != kFileTypes.end()) return row->number;
  std::uint32_t number = 0;
  if (recipe.starts_with(kUnknown)) {
    const std::string_view digits = recipe.substr(kUnknown.size());
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc()) return number;
  }
  return guess_file_type(matrices);
}

namespace {

constexpr std::size_t kBytes = 64 << 10;  // approximately how many a read swaps at a time

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
  // Returns the place of the first byte of the block.
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    return blocks_->stored_byte(offset / type_.bytes * type_.bytes);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<std::byte> blocks;
    read_units(offset, out, type_.bytes, kBytes / type_.bytes, [&](std::uint64_t first, std::size_t count) {
      blocks.resize(count * type_.bytes);
      blocks_->read(first * type_.bytes, blocks);
      swap_block_bytes(type_, blocks);
      return std::span<const std::byte>(blocks);
    });
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
