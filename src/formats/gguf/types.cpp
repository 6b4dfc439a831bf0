#include "formats/gguf/types.hpp"

#include <poise/tensor.hpp>

#include "bytes/checked.hpp"
#include "codec/block_type.hpp"

namespace poise::gguf {

std::optional<std::uint64_t> stored_bytes(std::uint32_t type, std::uint64_t elements) {
  if (const auto dtype = dtype_spelled(kSpellings, type)) return packed_bytes(*dtype, elements);
  const BlockType* blocks = block_type_numbered(type);
  return blocks == nullptr ? std::nullopt : checked_mul(elements / blocks->elements, blocks->bytes);
}

}  // namespace poise::gguf
