// Writes zip archives from front to back, with aligned members that are not compressed.
//
// A data descriptor with the CRC-32 follows each member, as in archives of PyTorch. The directory has the CRC-32, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bytes/byte_writer.hpp"
#include "io/sink.hpp"
#include "pack/digest.hpp"

namespace poise {

class ZipWriter {
 public:
  // Requires: the sink outlives this and is empty.
  ZipWriter(Sink& sink, std::uint64_t alignment) : sink_(sink), alignment_(alignment) {}

  // Begins a member of `bytes` bytes, which the caller then writes to the sink and passes to the returned Crc32. Aligns
  // the member's byte `align_at`. Requires: the name is new and shorter than 64 KiB.
  Crc32& begin_member(std::string name, std::uint64_t bytes, std::uint64_t align_at = 0);
  // Writes the member's descriptor.
  void end_member();
  // Adds a member from memory.
  void add_member(std::string name, std::span<const std::byte> bytes);
  // Writes the directory. Callers call it once, at the end.
  void finish();

 private:
  struct Member {
    std::string name;
    std::uint64_t header;
    std::uint64_t bytes;
    std::uint32_t crc32;
  };

  Sink& sink_;
  std::uint64_t alignment_;
  std::vector<Member> members_;
  Crc32 crc32_;
};

}  // namespace poise
