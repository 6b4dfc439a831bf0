// Defines the table of block types. Other modules include block_type.hpp instead, unless they find types by name at
// compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "codec/block_type.hpp"
#include "codec/blocks/codecs.hpp"

namespace poise {
namespace block_offsets {

inline constexpr std::array<std::uint16_t, 1> kFirst = {0};
inline constexpr std::array<std::uint16_t, 2> kFirstTwo = {0, 2};
inline constexpr std::array<std::uint16_t, 1> kAfter64 = {64};
inline constexpr std::array<std::uint16_t, 1> kAfter208 = {208};
inline constexpr std::span<const std::uint16_t> kBytesOnly = {};
inline constexpr auto kNoByteOrder = std::nullopt;

}  // namespace block_offsets

inline constexpr auto kBlockTypes = [] {
  using namespace block_offsets;
  // The offsets are those that gguf-py/gguf/scripts/gguf_convert_endian.py (llama.cpp) swaps. It refuses the types with
  // kNoByteOrder.
  return std::to_array<BlockType>({
      {"q4_0", 2, 32, 18, decode_q4_0, encode_q4_0, kFirst},
      {"q4_1", 3, 32, 20, decode_q4_1, encode_q4_1, kNoByteOrder},
      {"q5_0", 6, 32, 22, decode_q5_0, encode_q5_0, kNoByteOrder},
      {"q5_1", 7, 32, 24, decode_q5_1, encode_q5_1, kNoByteOrder},
      {"q8_0", 8, 32, 34, decode_q8_0, encode_q8_0, kFirst, {}, false, false},
      {"q8_1", 9, 32, 36, nullptr, nullptr, kNoByteOrder},
      {"q2_k", 10, 256, 84, decode_q2_k, encode_q2_k, kNoByteOrder, "q4_0"},
      {"q3_k", 11, 256, 110, decode_q3_k, encode_q3_k, kNoByteOrder, "q4_0"},
      {"q4_k", 12, 256, 144, decode_q4_k, encode_q4_k, kFirstTwo, "q5_0"},
      {"q5_k", 13, 256, 176, decode_q5_k, encode_q5_k, kNoByteOrder, "q5_1"},
      {"q6_k", 14, 256, 210, decode_q6_k, encode_q6_k, kAfter208, "q8_0"},
      {"q8_k", 15, 256, 292, decode_q8_k, nullptr, kNoByteOrder},
      {"iq2_xxs", 16, 256, 66, decode_iq2_xxs, encode_iq2_xxs, kNoByteOrder, "iq4_nl", true},
      {"iq2_xs", 17, 256, 74, decode_iq2_xs, encode_iq2_xs, kNoByteOrder, "iq4_nl", true},
      {"iq3_xxs", 18, 256, 98, decode_iq3_xxs, encode_iq3_xxs, kNoByteOrder, "iq4_nl", true},
      {"iq1_s", 19, 256, 50, decode_iq1_s, encode_iq1_s, kNoByteOrder, "iq4_nl", true},
      {"iq4_nl", 20, 32, 18, decode_iq4_nl, encode_iq4_nl, kNoByteOrder},
      {"iq3_s", 21, 256, 110, decode_iq3_s, encode_iq3_s, kNoByteOrder, "iq4_nl"},
      {"iq2_s", 22, 256, 82, decode_iq2_s, encode_iq2_s, kNoByteOrder, "iq4_nl", true},
      {"iq4_xs", 23, 256, 136, decode_iq4_xs, encode_iq4_xs, kNoByteOrder, "iq4_nl"},
      {"iq1_m", 29, 256, 56, decode_iq1_m, encode_iq1_m, kNoByteOrder, "iq4_nl", true},
      {"tq1_0", 34, 256, 54, decode_tq1_0, encode_tq1_0, kNoByteOrder, "q4_0", false, false},
      {"tq2_0", 35, 256, 66, decode_tq2_0, encode_tq2_0, kAfter64, "q4_0", false, false},
      {"mxfp4", 39, 32, 17, decode_mxfp4, encode_mxfp4, kBytesOnly, {}, false, false},
      {"nvfp4", 40, 64, 36, decode_nvfp4, encode_nvfp4, kBytesOnly, {}, false, false},
      {"q1_0", 41, 128, 18, decode_q1_0, nullptr, kFirst},
      {"q2_0", 42, 64, 18, decode_q2_0, nullptr, kNoByteOrder},
  });
}();

// Returns the index in the table of the type with this name, or the size of the table if no type has it.
constexpr std::size_t find_block_type_index(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kBlockTypes, name, &BlockType::name) - kBlockTypes.begin());
}

}  // namespace poise
