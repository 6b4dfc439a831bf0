#include "formats/alt/sections.hpp"

#include <fmt/format.h>

namespace poise::alt {
namespace {

// Keeps the position.
bool at_end_marker(ByteReader& bytes) {
  const std::uint64_t here = bytes.position();
  const std::int32_t low = bytes.i32("end marker");
  const std::int32_t high = bytes.remaining() >= 4 ? bytes.i32("end marker") : 0;
  bytes.seek(here);
  return low == kEndMarker && high == 0;
}

// The section that begins here. Keeps the position.
std::size_t section_here(FileReader& reader, std::span<const Section> order, std::size_t next) {
  ByteReader& bytes = reader.bytes();
  reader.require_marker();
  const std::uint64_t here = bytes.position();
  const std::int64_t marker = bytes.i64("section_marker");
  bytes.seek(here);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (info(order[i]).marker != marker) continue;
    if (i < next)
      bytes.fail("section_marker", fmt::format("the {} section comes twice or too late", info(order[i]).name), here);
    return i;
  }
  bytes.fail("section_marker", fmt::format("expected a section of this version, found 0x{:x}", marker), here);
}

void read_end_marker(FileReader& reader, std::uint64_t end_bytes) {
  ByteReader& bytes = reader.bytes();
  const std::uint64_t begin = bytes.position();
  const std::uint64_t found = bytes.remaining() == 4 ? 4 : 8;
  if (bytes.remaining() != found) {
    bytes.fail("end marker",
               fmt::format("expected {} bytes and the end of the file, found {} bytes", end_bytes, bytes.remaining()),
               begin);
  }
  if (found != end_bytes)
    reader.warn("end marker", fmt::format("expected {} bytes, found {}", end_bytes, found), begin);
}

}  // namespace

void read_sections(FileReader& reader, std::span<const Section> order, std::uint64_t end_bytes,
                   const std::function<void(Section section, const OpenSection& open)>& read) {
  std::size_t next = 0;  // the first section that may still come
  const auto skip_to = [&](std::size_t found) {
    for (; next < found; ++next)
      reader.warn(info(order[next]).name, "the section is missing", reader.bytes().position());
  };
  while (!at_end_marker(reader.bytes())) {
    const std::size_t found = section_here(reader, order, next);
    skip_to(found);
    const auto scope = reader.bytes().scope(info(order[found]).name);
    read(order[found], reader.open_section(order[found]));
    next = found + 1;
  }
  skip_to(order.size());
  read_end_marker(reader, end_bytes);
}

}  // namespace poise::alt
