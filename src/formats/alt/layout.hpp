// The layout that both versions of ALT share ("File Layout" of their specifications).
//
// A file is a start marker, sections, and an end marker; each begins on a multiple of 32 bytes, after zero padding:
//
//   version 2   start | general | parameters | tokenizer | tensors | end
//   version 1   start           | parameters | tokenizer | tensors | end
//
//   section     i64 marker, i64 section_size (of the whole section: marker, size, fields and padding), fields, padding
//   text        i32 length in bytes, that many bytes of UTF-8
//
// The reader of each section lists its fields: read_v2.cpp, tokens.cpp, tensors.cpp, read_v1.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/spellings.hpp"

namespace poise::alt {

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint64_t kHeaderBytes = 16;  // of a section: marker and size

constexpr std::int64_t kStartV2 = 0x616C7400;
constexpr std::int64_t kStartAltc = 0x616C7463;  // "altc": version 1, and some files of version 2
constexpr std::int64_t kEndMarker = 0x0FFFFFFF;

// In file order.
enum class Section { general, parameters, tokenizer, tensors };

struct SectionInfo {
  std::string_view name;
  std::int64_t marker;
};

constexpr std::array<SectionInfo, 4> kSections = {{
    {"general", 0xCAFEBABE},
    {"parameters", 0xDEADBEEF},
    {"tokenizer", 0xBADDCAFE},
    {"tensors", 0xFACEFEED},
}};

constexpr const SectionInfo& info(Section section) { return kSections[static_cast<std::size_t>(section)]; }

// The data_type codes of both versions; bf16 is version 2's extension.
inline constexpr std::array kCodes = {
    Spelling<std::int32_t>{DType::f32, 0},   Spelling<std::int32_t>{DType::f16, 1},
    Spelling<std::int32_t>{DType::bf16, 4},  Spelling<std::int32_t>{DType::qint8, 2},
    Spelling<std::int32_t>{DType::qint4, 3},
};

}  // namespace poise::alt
