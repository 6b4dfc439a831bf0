// Lists the pre-tokenizers that GGUF files name, a row for each way to cut texts.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace poise {

struct GgufPreTokenizer {
  std::array<std::string_view, 19> names;         // the first is the one to write; unused places are empty
  std::span<const std::string_view> expressions;  // each cuts the pieces of the previous one
  bool ignore_merges = false;
  bool adds_bos = false;    // BOS goes in front of texts if the file lacks add_bos_token
  bool always_bos = false;  // BOS goes in front of texts, whatever the file contains
  bool byte_level = true;   // false: U+2581 for spaces, and bytes as <0x00>
};

// Returns all rows. Of several rows that cut alike and have the same ignore_merges, the first is the one to write.
std::span<const GgufPreTokenizer> list_gguf_pre_tokenizers();

// Returns null for unknown names.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

}  // namespace poise
