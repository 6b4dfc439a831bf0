// zip archives, written from front to back: members are stored, and each begins at a multiple of an alignment.
//
// The CRC-32 of a member follows its bytes (a "data descriptor"), as in archives of PyTorch; the directory has it, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bytes/byte_writer.hpp"
#include "io/sink.hpp"
#include "pack/crc32.hpp"

namespace poise {

class ZipWriter {
 public:
  // Requires: the sink outlives this, and holds nothing yet.
  ZipWriter(Sink& sink, std::uint64_t alignment) : sink_(sink), alignment_(alignment) {}

  // Begins a member of so many bytes, which the caller writes to the sink and shows to the Crc32 that this returns. The
  // alignment counts for the byte `align_at` of them. Requires: the name has less than 64 KiB and is new.
  Crc32& begin(std::string name, std::uint64_t bytes, std::uint64_t align_at = 0);
  // The member's bytes are written.
  void end();
  // A member that is in memory.
  void add(std::string name, std::span<const std::byte> bytes);
  // The directory. Called once, at the end.
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
