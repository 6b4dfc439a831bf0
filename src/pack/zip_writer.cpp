// Writes zip archives; zip.hpp has the layout. Source: APPNOTE.TXT 6.3.10 of PKWARE, sections 4.3 to 4.5.
#include "pack/zip_writer.hpp"

#include <algorithm>
#include <utility>

#include <poise/error.hpp>

#include "pack/zip.hpp"

namespace poise {
namespace {

using namespace zip;

constexpr std::uint16_t kVersion = 45;                // zip64
constexpr std::uint16_t kFlags = 1 << 3 | 1 << 11;    // a descriptor follows; names are UTF-8
constexpr std::uint16_t kDate = 33;                   // 1980-01-01, so that the same model gives the same bytes
constexpr std::uint16_t kPaddingExtra = 0x4246;       // "FB", as in archives of PyTorch
constexpr std::uint64_t kPaddingExtraBytes = 4;       // its kind and its length
constexpr std::uint64_t kZip64HeaderExtraBytes = 20;  // its kind, its length and both sizes

bool is_wide(std::uint64_t number) { return number >= kWide; }
std::uint32_t narrow_number(std::uint64_t number) {
  return is_wide(number) ? kWide : static_cast<std::uint32_t>(number);
}

// Appends the fields that a header and an entry of the directory share.
void append_common_fields(ByteWriter& record, std::uint32_t crc32, std::uint64_t bytes, const std::string& name,
                          std::uint64_t extra_bytes) {
  record.append_u16(kVersion);
  record.append_u16(kFlags);
  record.append_u16(kStored);
  record.append_u16(0);  // time
  record.append_u16(kDate);
  record.append_u32(crc32);
  record.append_u32(narrow_number(bytes));
  record.append_u32(narrow_number(bytes));
  record.append_u16(static_cast<std::uint16_t>(name.size()));
  record.append_u16(static_cast<std::uint16_t>(extra_bytes));
}

}  // namespace

Crc32& ZipWriter::begin_member(std::string name, std::uint64_t bytes, std::uint64_t align_at) {
  if (name.size() > 0xffff) throw Error(ErrorKind::internal, "zip: a name has more than 65535 bytes");
  const std::uint64_t zip64_extra = is_wide(bytes) ? kZip64HeaderExtraBytes : 0;
  const std::uint64_t unpadded =
      sink_.position() + kHeaderBytes + name.size() + zip64_extra + kPaddingExtraBytes + align_at;
  const std::uint64_t padding = (alignment_ - unpadded % alignment_) % alignment_;
  ByteWriter header;
  header.append_u32(kHeader);
  append_common_fields(header, 0, bytes, name, zip64_extra + kPaddingExtraBytes + padding);
  header.append_text(name);
  if (zip64_extra > 0) {
    header.append_u16(kZip64Extra);
    header.append_u16(16);
    header.append_u64(bytes);
    header.append_u64(bytes);
  }
  header.append_u16(kPaddingExtra);
  header.append_u16(static_cast<std::uint16_t>(padding));
  for (std::uint64_t i = 0; i < padding; ++i) header.append_u8('Z');
  members_.push_back({std::move(name), sink_.position(), bytes, 0});
  sink_.write(header.bytes());
  crc32_ = Crc32();
  return crc32_;
}

void ZipWriter::end_member() {
  Member& member = members_.back();
  member.crc32 = crc32_.value();
  ByteWriter descriptor;
  descriptor.append_u32(kDescriptor);
  descriptor.append_u32(member.crc32);
  for (int i = 0; i < 2; ++i) {  // stored and decoded
    if (is_wide(member.bytes)) {
      descriptor.append_u64(member.bytes);
    } else {
      descriptor.append_u32(static_cast<std::uint32_t>(member.bytes));
    }
  }
  sink_.write(descriptor.bytes());
}

void ZipWriter::add_member(std::string name, std::span<const std::byte> bytes) {
  begin_member(std::move(name), bytes.size()).update(bytes);
  sink_.write(bytes);
  end_member();
}

void ZipWriter::finish() {
  const std::uint64_t begin = sink_.position();
  for (const Member& member : members_) {
    ByteWriter extra;
    if (is_wide(member.bytes)) {
      extra.append_u64(member.bytes);
      extra.append_u64(member.bytes);
    }
    if (is_wide(member.header)) extra.append_u64(member.header);
    const std::size_t extra_bytes = extra.size() == 0 ? 0 : extra.size() + 4;
    ByteWriter entry;
    entry.append_u32(kDirectoryEntry);
    entry.append_u16(kVersion);  // the version that made the archive
    append_common_fields(entry, member.crc32, member.bytes, member.name, extra_bytes);
    entry.append_u16(0);  // comment
    entry.append_u16(0);  // disk
    entry.append_u16(0);  // attributes
    entry.append_u32(0);
    entry.append_u32(narrow_number(member.header));
    entry.append_text(member.name);
    if (extra_bytes > 0) {
      entry.append_u16(kZip64Extra);
      entry.append_u16(static_cast<std::uint16_t>(extra.size()));
      entry.append(extra.bytes());
    }
    sink_.write(entry.bytes());
  }
  const std::uint64_t end = sink_.position();
  const std::uint64_t count = members_.size();
  ByteWriter record;
  if (count >= kWideCount || is_wide(begin) || is_wide(end - begin)) {
    record.append_u32(kZip64End);
    record.append_u64(kZip64EndBytes - 12);
    record.append_u16(kVersion);
    record.append_u16(kVersion);
    record.append_u32(0);
    record.append_u32(0);
    record.append_u64(count);
    record.append_u64(count);
    record.append_u64(end - begin);
    record.append_u64(begin);
    record.append_u32(kZip64Locator);
    record.append_u32(0);
    record.append_u64(end);
    record.append_u32(1);
  }
  record.append_u32(kEnd);
  record.append_u16(0);
  record.append_u16(0);
  const auto narrow_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kWideCount));
  record.append_u16(narrow_count);
  record.append_u16(narrow_count);
  record.append_u32(narrow_number(end - begin));
  record.append_u32(narrow_number(begin));
  record.append_u16(0);
  sink_.write(record.bytes());
}

}  // namespace poise
