// Constants of zip archives, for reader and writer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise::zip {

inline constexpr std::uint32_t kHeader = 0x04034b50;          // "PK\3\4"
inline constexpr std::uint32_t kDescriptor = 0x08074b50;      // "PK\7\10"
inline constexpr std::uint32_t kDirectoryEntry = 0x02014b50;  // "PK\1\2"
inline constexpr std::uint32_t kZip64End = 0x06064b50;        // "PK\6\6"
inline constexpr std::uint32_t kZip64Locator = 0x07064b50;    // "PK\6\7"
inline constexpr std::uint32_t kEnd = 0x06054b50;             // "PK\5\6"

inline constexpr std::uint64_t kHeaderBytes = 30;
inline constexpr std::uint64_t kDirectoryEntryBytes = 46;
inline constexpr std::uint64_t kZip64EndBytes = 56;
inline constexpr std::uint64_t kZip64LocatorBytes = 20;
inline constexpr std::uint64_t kEndBytes = 22;

inline constexpr std::uint16_t kMadeOnUnix = 3;  // the high byte of the version: attributes have a mode of Unix
inline constexpr std::uint16_t kMadeOnMacOs = 19;
inline constexpr std::uint32_t kModeOfFileType = 0170000;
inline constexpr std::uint32_t kModeOfLink = 0120000;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;
inline constexpr std::uint16_t kZip64Extra = 1;
inline constexpr std::uint16_t kUnicodePathExtra = 0x7075;     // a version, the CRC-32 of the name, and another name
inline constexpr std::uint64_t kUnicodePathHeadBytes = 1 + 4;  // before that name
inline constexpr std::uint32_t kWide = 0xffffffff;             // the number is in a zip64 record
inline constexpr std::uint16_t kWideCount = 0xffff;            // of members: the same

}  // namespace poise::zip
