#include "formats/alt/file_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"

namespace poise::alt {

std::string FileReader::read_text(std::string_view field) {
  const auto scope = bytes_.open_scope(field);
  return read_text(read_count32("length"), "text");
}

std::string FileReader::read_text(std::int32_t length, std::string_view field) {
  const std::uint64_t at = bytes_.position();
  std::string text(bytes_.read_text(static_cast<std::uint64_t>(length), field));
  if (!is_utf8(text)) bytes_.fail(field, "expected UTF-8, found other bytes", at);
  if (const auto nul = text.find('\0'); nul != std::string::npos)
    bytes_.fail(field, fmt::format("holds a NUL at its byte {}", nul), at);
  return text;
}

bool FileReader::read_flag(std::string_view field) {
  const std::uint64_t at = bytes_.position();
  const std::uint8_t value = bytes_.read_u8(field);
  if (value > 1) bytes_.fail(field, fmt::format("expected 0 or 1, found {}", value), at);
  return value == 1;
}

OpenSection FileReader::open_section(Section section) {
  OpenSection open;
  open.begin = bytes_.position();
  const std::int64_t marker = bytes_.read_i64("section_marker");
  if (marker != get_section_info(section).marker)
    bytes_.fail("section_marker",
                fmt::format("expected 0x{:x}, found 0x{:x}", get_section_info(section).marker, marker), open.begin);
  open.size = read_count64("section_size");
  // Programs count different bytes in section_size, but never more than the file has from the section's beginning.
  const std::uint64_t left = file_bytes_ - open.begin;
  if (static_cast<std::uint64_t>(open.size) > left) {
    bytes_.fail(
        "section_size",
        fmt::format("the section needs {} bytes, the file has {} from here: it is cut off, or the size is wrong",
                    open.size, left),
        open.begin + 8);
  }
  return open;
}

void FileReader::close_section(const OpenSection& section, std::uint64_t uncounted) {
  const std::uint64_t no_padding = bytes_.position() - section.begin;
  const std::uint64_t fields = no_padding - kHeaderBytes;
  skip_padding();
  const std::uint64_t whole = bytes_.position() - section.begin;
  const std::uint64_t at = section.begin + 8;
  const auto size = static_cast<std::uint64_t>(section.size);
  const auto warn_of_size = [&](std::string_view what) {
    warn("section_size", fmt::format("counts {}: expected {}, found {}", what, whole, size), at);
  };
  if (size == whole) return;
  if (size == no_padding) return warn_of_size("no padding");
  const bool too_small = uncounted > 0 && uncounted <= fields && size == fields - uncounted;
  if (size != fields && !too_small) {
    bytes_.fail(
        "section_size",
        fmt::format("expected {} (or {} or {}, as other writers count), found {}", whole, no_padding, fields, size),
        at);
  }
  warn_of_size(too_small ? fmt::format("the fields less {} bytes", uncounted) : "the fields only");
  dialect_.sizes_of_alt_c = true;
}

void FileReader::require_marker() {
  const std::uint64_t here = bytes_.position();
  const std::int32_t marker = bytes_.read_i32("section_marker");
  bytes_.seek(here);
  const auto has_marker = [&](const SectionInfo& section) {
    return static_cast<std::int32_t>(section.marker) == marker;
  };
  if (marker == kEndMarker || std::ranges::any_of(kSections, has_marker)) return;
  bytes_.fail("section_marker",
              fmt::format("expected a section or the end marker 0x{:x}, found 0x{:x}", kEndMarker,
                          static_cast<std::uint32_t>(marker)),
              here);
}

void FileReader::skip_padding() {
  const std::uint64_t begin = bytes_.position();
  const std::uint64_t end = *checked_align(begin, kAlignment);
  const std::string_view padding = bytes_.read_text(end - begin, "padding");
  const auto dirt = padding.find_first_not_of('\0');
  if (dirt == std::string_view::npos) return;
  const std::string problem =
      fmt::format("expected zero bytes, found 0x{:02x}", static_cast<unsigned char>(padding[dirt]));
  if (padding_ == Padding::clean) bytes_.fail("padding", problem, begin + dirt);
  warn("padding", problem, begin + dirt);
}

void FileReader::warn(std::string_view field, std::string_view problem, std::uint64_t offset) {
  constexpr std::size_t kMost = 1000;
  if (warnings_.size() > kMost) return;
  warnings_.push_back({Severity::warning,
                       warnings_.size() < kMost ? bytes_.describe(field, problem) : "further warnings are left out",
                       bytes_.path(), offset});
}

void FileReader::rewind(const Mark& mark) {
  bytes_.seek(mark.position);
  warnings_.resize(mark.warnings);
  dialect_ = mark.dialect;
}

namespace {

// Returns true if the end marker begins here. Does not move the reader.
bool is_at_end_marker(ByteReader& bytes) {
  const std::uint64_t here = bytes.position();
  const std::int32_t low = bytes.read_i32("end marker");
  const std::int32_t high = bytes.remaining() >= 4 ? bytes.read_i32("end marker") : 0;
  bytes.seek(here);
  return low == kEndMarker && high == 0;
}

// Returns the place in `order` of the section that begins here. Throws invalid_file for an unknown section, and for a
// place before `next`. Does not move the reader.
std::size_t find_section(FileReader& reader, std::span<const Section> order, std::size_t next) {
  ByteReader& bytes = reader.bytes();
  reader.require_marker();
  const std::uint64_t here = bytes.position();
  const std::int64_t marker = bytes.read_i64("section_marker");
  bytes.seek(here);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (get_section_info(order[i]).marker != marker) continue;
    if (i < next)
      bytes.fail("section_marker",
                 fmt::format("the {} section appears twice or too late", get_section_info(order[i]).name), here);
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
  const auto warn_of_missing_until = [&](std::size_t found) {
    for (; next < found; ++next)
      reader.warn(get_section_info(order[next]).name, "the section is missing", reader.bytes().position());
  };
  while (!is_at_end_marker(reader.bytes())) {
    const std::size_t found = find_section(reader, order, next);
    warn_of_missing_until(found);
    const auto scope = reader.bytes().open_scope(get_section_info(order[found]).name);
    read(order[found], reader.open_section(order[found]));
    next = found + 1;
  }
  warn_of_missing_until(order.size());
  read_end_marker(reader, end_bytes);
}

}  // namespace poise::alt
