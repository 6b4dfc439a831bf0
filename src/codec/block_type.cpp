#include "codec/block_type.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/block_type_table.hpp"

namespace poise {
namespace {

template <typename Field, typename Value>
const BlockType* find_block_type(Field field, const Value& value) {
  const auto* const found = std::ranges::find(kBlockTypes, value, field);
  return found == kBlockTypes.end() ? nullptr : found;
}

}  // namespace

std::span<const BlockType> list_block_types() { return kBlockTypes; }
const BlockType* find_named_block_type(std::string_view name) { return find_block_type(&BlockType::name, name); }
const BlockType* get_block_type(const StoredType& type) {
  if (type.blocks.empty()) return nullptr;
  if (const BlockType* found = find_named_block_type(type.blocks)) return found;
  throw Error(ErrorKind::bad_argument, fmt::format("\"{}\" is not a type of blocks", type.blocks));
}

const BlockType* find_numbered_block_type(std::uint32_t number) { return find_block_type(&BlockType::number, number); }

const BlockType* choose_block_type_for_rows(const BlockType& type, std::uint64_t row) {
  if (row % type.elements == 0) return &type;
  const BlockType* instead = type.fallback.empty() ? nullptr : find_named_block_type(type.fallback);
  return instead != nullptr && row % instead->elements == 0 ? instead : nullptr;
}

void swap_block_bytes(const BlockType& type, std::span<std::byte> blocks) {
  if (type.swapped->empty()) return;
  for (std::size_t block = 0; block + type.bytes <= blocks.size(); block += type.bytes) {
    for (const std::uint16_t offset : *type.swapped) std::swap(blocks[block + offset], blocks[block + offset + 1]);
  }
}

}  // namespace poise
