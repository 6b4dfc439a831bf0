// Puts GGUF files together field by field from the GGUF specification of ggml. Shares no code with the code under test.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/byte_file.hpp"

namespace poise::gguf_test {

using support::ByteFile;

// The numbers of value types and tensor types in the specification.
enum : std::uint32_t { kU8 = 0, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kArray, kU64, kI64, kF64 };

inline std::string number(std::uint64_t value, std::size_t bytes) { return support::le(value, bytes); }
inline std::string text(std::string_view value) { return number(value.size(), 8) + std::string(value); }
inline std::string f32(float value) { return number(std::bit_cast<std::uint32_t>(value), 4); }

struct Entry {
  std::string key;
  std::uint32_t type;
  std::string value;
};
inline Entry text_entry(std::string key, std::string_view value) { return {std::move(key), kText, text(value)}; }
inline Entry u32_entry(std::string key, std::uint32_t value) { return {std::move(key), kU32, number(value, 4)}; }
inline Entry f32_entry(std::string key, float value) { return {std::move(key), kF32, f32(value)}; }
inline Entry array_entry(std::string key, std::uint32_t items, const std::vector<std::string>& values) {
  std::string bytes = number(items, 4) + number(values.size(), 8);
  for (const std::string& value : values) bytes += value;
  return {std::move(key), kArray, bytes};
}

struct TensorEntry {
  std::string name;
  std::vector<std::uint64_t> dimensions;  // as in the file: the innermost first
  std::uint32_t type;
  std::string data;
};

// Returns a file with the fields "magic", "version", "tensor count", "metadata count"; for each entry "key N", "type
// N", "value N"; for each tensor "name N", "rank N", "dimension N.D", "tensor type N", "offset N"; "padding"; "data N",
// "padding N".
inline ByteFile file_of(const std::vector<Entry>& entries, const std::vector<TensorEntry>& tensors,
                        std::uint64_t alignment = 32) {
  ByteFile file;
  file.raw("magic", "GGUF")
      .raw("version", number(3, 4))
      .u64("tensor count", tensors.size())
      .u64("metadata count", entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string n = " " + std::to_string(i);
    file.raw("key" + n, text(entries[i].key))
        .raw("type" + n, number(entries[i].type, 4))
        .raw("value" + n, entries[i].value);
  }
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string n = " " + std::to_string(i);
    file.raw("name" + n, text(tensors[i].name)).raw("rank" + n, number(tensors[i].dimensions.size(), 4));
    for (std::size_t d = 0; d < tensors[i].dimensions.size(); ++d)
      file.u64("dimension" + n + "." + std::to_string(d), tensors[i].dimensions[d]);
    file.raw("tensor type" + n, number(tensors[i].type, 4)).u64("offset" + n, offset);
    offset = (offset + tensors[i].data.size() + alignment - 1) / alignment * alignment;
  }
  file.pad("padding", alignment);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string n = " " + std::to_string(i);
    file.raw("data" + n, tensors[i].data).pad("padding" + n, alignment);
  }
  return file;
}

}  // namespace poise::gguf_test
