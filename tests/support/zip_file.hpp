// A zip archive of stored members, as named fields, so that a test can break each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/byte_file.hpp"

namespace poise::support {

// Computes the CRC-32 of RFC 1952.
inline std::uint32_t crc32_of(std::string_view bytes) {
  static const std::vector<std::uint32_t> table = [] {
    std::vector<std::uint32_t> crcs(256);
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t& crc = crcs[byte] = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    }
    return crcs;
  }();
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 255];
  return ~crc;
}

struct ZipEntry {
  std::string name;
  std::string bytes;               // as stored
  std::string deflated_from = {};  // the decoded bytes, if `bytes` are deflated
  bool is_deflated = false;
};

// Makes an archive with named fields. The first member has "0 signature", "0 flags", ..., "0 bytes"; its entry in the
// directory has "0 entry signature", ...; the end has "end signature", ...
inline ByteFile zip_file(const std::vector<ZipEntry>& entries) {
  ByteFile file;
  const auto u16 = [](std::uint64_t number) { return static_cast<std::uint16_t>(number); };
  const auto u32 = [](std::uint64_t number) { return static_cast<std::uint32_t>(number); };
  const auto add_sizes = [&](const ZipEntry& entry, const std::string& prefix) {
    const std::string& content = entry.is_deflated ? entry.deflated_from : entry.bytes;
    file.u16(prefix + "flags", 0).u16(prefix + "method", entry.is_deflated ? 8 : 0).u32(prefix + "time", 0x00210000);
    file.u32(prefix + "crc32", crc32_of(content)).u32(prefix + "stored bytes", u32(entry.bytes.size()));
    file.u32(prefix + "size", u32(content.size())).u16(prefix + "name length", u16(entry.name.size()));
    file.u16(prefix + "extra length", 0);
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string prefix = std::to_string(i) + " ";
    file.raw(prefix + "signature", "PK\3\4").u16(prefix + "version", 20);
    add_sizes(entries[i], prefix);
    file.raw(prefix + "name", entries[i].name).raw(prefix + "extra", "").raw(prefix + "bytes", entries[i].bytes);
  }
  std::vector<std::uint64_t> headers;
  for (std::size_t i = 0; i < entries.size(); ++i) headers.push_back(file.offset(std::to_string(i) + " signature"));
  const std::uint64_t begin = file.bytes().size();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string prefix = std::to_string(i) + " entry ";
    file.raw(prefix + "signature", "PK\1\2").u32(prefix + "versions", 20 << 16 | 20);
    add_sizes(entries[i], prefix);
    file.u16(prefix + "comment length", 0).u32(prefix + "disk", 0).u32(prefix + "attributes", 0);
    file.u32(prefix + "offset", u32(headers[i])).raw(prefix + "name", entries[i].name).raw(prefix + "extra", "");
  }
  const std::uint64_t end = file.bytes().size();
  file.raw("end signature", "PK\5\6").u16("end disk", 0).u16("end directory disk", 0);
  file.u16("end here", u16(entries.size())).u16("end members", u16(entries.size()));
  file.u32("end bytes", u32(end - begin)).u32("end offset", u32(begin)).u16("end comment length", 0);
  return file;
}

}  // namespace poise::support
