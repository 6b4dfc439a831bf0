// Members of tar archives as POSIX.1 defines them, so that a test can break each field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace poise::support {

struct TarEntry {
  std::string name;
  std::string bytes = {};
  char type = '0';
  std::string prefix = {};
  std::string size = {};      // empty: octal digits of the bytes' length
  std::string checksum = {};  // empty: the right one
  std::string link = {};
  bool is_v7 = false;  // from before POSIX: without "ustar" and prefix
};

// A header, and the bytes filled up to a block.
inline std::string tar_member(const TarEntry& entry) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, entry.name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, entry.size.empty() ? fmt::format("{:011o}", entry.bytes.size()) : entry.size);
  put(136, "00000000000");
  put(148, "        ");
  header[156] = entry.type;
  put(157, entry.link);
  if (!entry.is_v7) put(257, std::string_view("ustar\00000", 8));
  put(345, entry.prefix);
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, entry.checksum.empty() ? fmt::format("{:06o}", sum) + std::string("\0 ", 2) : entry.checksum);
  return header + entry.bytes + std::string((512 - entry.bytes.size() % 512) % 512, '\0');
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace poise::support
