// Reads zip archives, and refuses those that two readers could read differently. zip.hpp has the layout. Source:
// APPNOTE.TXT 6.3.10 of PKWARE, sections 4.3 to 4.5.
#include "pack/zip.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/checked.hpp"
#include "io/source_range.hpp"
#include "pack/digest.hpp"
#include "pack/pump.hpp"

namespace poise {
namespace {

using namespace zip;

constexpr std::uint64_t kMostMembers = 2'000'000;
constexpr std::uint16_t kHasDescriptor = 8;
constexpr std::uint16_t kEncrypted = 1 | 1 << 6 | 1 << 13;  // encrypted; strongly; with an encrypted directory
constexpr std::uint16_t kPatch = 1 << 5;

// Locates the central directory (APPNOTE.TXT, 4.3.12).
struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t members = 0;
  std::uint64_t end_record = 0;  // offset of the first record after it
};

// Holds the "end of central directory" record (APPNOTE.TXT, 4.3.16).
struct EndRecord {
  std::uint64_t at = 0;
  std::uint16_t disk = 0;
  std::uint16_t directory_disk = 0;
  std::uint16_t members_here = 0;
  std::uint16_t members = 0;
  std::uint32_t bytes = 0;
  std::uint32_t begin = 0;
};

// Returns true if a field of 32 bits (16 for counts) equals the number of the zip64 record, or has all bits set, which
// means that the zip64 record has the number.
template <typename Narrow>
bool is_consistent(Narrow narrow, std::uint64_t wide) {
  return narrow == static_cast<Narrow>(~Narrow{0}) || narrow == wide;
}

class Reader {
 public:
  explicit Reader(const SourcePtr& source)
      : source_(source), records_(make_unmapped_source(source)), reader_(*records_, "zip") {}

  std::vector<ZipMember> read_members() {
    const Directory directory = find_directory();
    if (directory.begin > directory.end_record || directory.bytes != directory.end_record - directory.begin)
      reader_.fail(
          "directory",
          fmt::format("{} bytes at {} do not end where its end record begins", directory.bytes, directory.begin),
          directory.end_record);
    if (directory.members > kMostMembers || directory.members > directory.bytes / kDirectoryEntryBytes)
      reader_.fail("directory",
                   fmt::format("{} members do not fit into its {} bytes", directory.members, directory.bytes),
                   directory.end_record);
    std::vector<ZipMember> members;
    members.reserve(directory.members);
    std::vector<std::uint64_t> entries;  // offsets of the directory's entries
    ByteReader list(*records_, "zip", directory.begin, directory.begin + directory.bytes);
    for (std::uint64_t i = 0; i < directory.members; ++i) {
      const auto scope = list.open_scope("member", static_cast<std::int64_t>(i));
      entries.push_back(list.position());
      members.push_back(read_entry(list));
    }
    if (list.remaining() > 0)
      list.fail("directory", fmt::format("{} bytes after the last of its members", list.remaining()), list.position());
    require_one_end_record(directory.begin);
    require_distinct_paths(members, entries);
    read_headers(members, directory.begin);
    return members;
  }

 private:
  // Returns the offset of the end record. Some readers take the last signature in the file; others require that the
  // record's comment ends where the file ends. So that both find the same record, only the last signature may meet this
  // requirement, and it must.
  std::uint64_t find_end_record() {
    constexpr std::string_view kSignature = "PK\5\6";
    const std::uint64_t size = source_->size();
    const std::uint64_t tail = std::min<std::uint64_t>(size, kEndBytes + 0xffff);
    std::vector<std::byte> bytes(tail);
    source_->read(size - tail, bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto is_last = [&](std::size_t at) {
      return bytes.size() - at >= kEndBytes &&
             load_le<std::uint16_t>(bytes.data() + at + 20) == bytes.size() - at - kEndBytes;
    };
    const std::size_t end = text.rfind(kSignature);
    if (end == std::string_view::npos)
      reader_.fail("end of the directory", "its record is missing: the file is cut off, or other bytes follow it",
                   size);
    if (!is_last(end))
      reader_.fail("end of the directory",
                   "its record does not end the file: the file is cut off, or other bytes follow the record",
                   size - tail + end);
    for (std::size_t at = end; at > 0 && (at = text.rfind(kSignature, at - 1)) != std::string_view::npos;) {
      other_ends_.push_back(size - tail + at);
      if (is_last(at))
        reader_.fail("end of the directory", "two records end the file: readers would use different ones",
                     size - tail + at);
    }
    return size - tail + end;
  }

  // Throws for a second end record in or after the directory. Bytes of members may have such signatures, since an
  // archive may hold another archive.
  void require_one_end_record(std::uint64_t directory) const {
    for (const std::uint64_t at : other_ends_) {
      if (at >= directory)
        reader_.fail("end of the directory", "a second record is in the directory: readers would use different ones",
                     at);
    }
  }

  Directory find_directory() {
    EndRecord end;
    end.at = find_end_record();
    reader_.seek(end.at + 4);
    end.disk = reader_.read_u16("number of this disk");
    end.directory_disk = reader_.read_u16("disk of the directory");
    end.members_here = reader_.read_u16("members on this disk");
    end.members = reader_.read_u16("members");
    end.bytes = reader_.read_u32("bytes of the directory");
    end.begin = reader_.read_u32("offset of the directory");
    if (end.disk != 0 || end.directory_disk != 0 || end.members_here != end.members) refuse_split_archive(end.at);
    if (auto wide = find_zip64_directory(end)) return *wide;
    return {end.begin, end.bytes, end.members, end.at};
  }

  // Finds the zip64 record. Some readers look for it directly before its locator, others at the offset that the locator
  // has. Some always use its numbers, others only if fields of the end record have all bits set. All must agree.
  std::optional<Directory> find_zip64_directory(const EndRecord& end) {
    if (end.at < kZip64LocatorBytes) return std::nullopt;
    const std::uint64_t locator = end.at - kZip64LocatorBytes;
    reader_.seek(locator);
    if (reader_.read_u32("zip64 locator") != kZip64Locator) return std::nullopt;
    const std::uint32_t disk = reader_.read_u32("disk of the zip64 end");
    const std::uint64_t at = reader_.read_u64("offset of the zip64 end");
    const std::uint32_t disks = reader_.read_u32("number of disks");
    if (disk != 0 || disks != 1) refuse_split_archive(locator);
    if (locator < kZip64EndBytes || at != locator - kZip64EndBytes)
      reader_.fail("offset of the zip64 end", fmt::format("{} is not directly before its locator at {}", at, locator),
                   locator + 8);
    reader_.seek(at);
    if (reader_.read_u32("zip64 end") != kZip64End) reader_.fail("zip64 end", "expected PK\\6\\6", at);
    const std::uint64_t bytes = reader_.read_u64("bytes of the zip64 end");
    if (bytes != kZip64EndBytes - 12)
      reader_.fail("bytes of the zip64 end", fmt::format("{}, expected {}", bytes, kZip64EndBytes - 12), at + 4);
    reader_.skip(2 + 2, "versions");
    const std::uint32_t this_disk = reader_.read_u32("number of this disk");
    const std::uint32_t directory_disk = reader_.read_u32("disk of the directory");
    Directory directory;
    directory.end_record = at;
    const std::uint64_t here = reader_.read_u64("members on this disk");
    directory.members = reader_.read_u64("members");
    directory.bytes = reader_.read_u64("bytes of the directory");
    directory.begin = reader_.read_u64("offset of the directory");
    if (this_disk != 0 || directory_disk != 0 || here != directory.members) refuse_split_archive(at);
    if (!is_consistent(end.members, directory.members) || !is_consistent(end.bytes, directory.bytes) ||
        !is_consistent(end.begin, directory.begin))
      reader_.fail("zip64 end",
                   fmt::format("the directory has {} members in {} bytes at {}; in the end record, {} in {} at {}",
                               directory.members, directory.bytes, directory.begin, end.members, end.bytes, end.begin),
                   at);
    return directory;
  }

  [[noreturn]] void refuse_split_archive(std::uint64_t at) const {
    throw Error(ErrorKind::unsupported, "zip: the archive is split into several files", source_->name(), at);
  }

  ZipMember read_entry(ByteReader& list) {
    const std::uint64_t at = list.position();
    if (list.read_u32("signature") != kDirectoryEntry) list.fail("signature", "expected PK\\1\\2", at);
    const unsigned made_by = list.read_u16("version made by") >> 8U;
    list.skip(2, "version needed");
    const std::uint16_t flags = list.read_u16("flags");
    const std::uint16_t method = list.read_u16("method");
    list.skip(4, "time");
    ZipMember member;
    member.crc32 = list.read_u32("CRC-32");
    member.stored_bytes = list.read_u32("stored bytes");
    member.bytes = list.read_u32("bytes");
    const std::uint16_t name_bytes = list.read_u16("length of the name");
    const std::uint16_t extra_bytes = list.read_u16("length of the extra fields");
    const std::uint16_t comment_bytes = list.read_u16("length of the comment");
    const std::uint16_t disk = list.read_u16("disk");
    list.skip(2, "attributes");
    const std::uint32_t mode = list.read_u32("attributes") >> 16U;
    const bool is_link = (made_by == kMadeOnUnix || made_by == kMadeOnMacOs) && (mode & kModeOfFileType) == kModeOfLink;
    member.header = list.read_u32("offset");
    member.name = list.read_text(name_bytes, "name");
    read_extra_fields(list, extra_bytes, member);
    list.skip(comment_bytes, "comment");
    if (disk != 0) refuse_split_archive(at);
    require_readable(member.name, flags, at);
    if (is_link)
      refuse(member.name, "is a symbolic link: unpack the archive, or pack it again with the files in place of links",
             at);
    if (method != kStored && method != kDeflated)
      refuse(member.name, fmt::format("is compressed by method {}; known are 0 (stored) and 8 (deflated)", method), at);
    member.deflated = method == kDeflated;
    require_valid_name(list, member.name, at);
    if (!member.deflated && member.bytes != member.stored_bytes)
      list.fail(member.name,
                fmt::format("{} bytes are stored as {}, but without compression", member.bytes, member.stored_bytes),
                at);
    if (member.deflated && member.bytes > compute_inflated_limit(member.stored_bytes))
      list.fail(member.name, fmt::format("{} bytes cannot inflate to {}", member.stored_bytes, member.bytes), at);
    return member;
  }

  // Reads the extra fields. If all 32 bits of a number in the entry are set, the zip64 field has it, in the order
  // bytes, stored bytes, offset.
  static void read_extra_fields(ByteReader& list, std::uint64_t bytes, ZipMember& member) {
    const std::uint64_t end = list.position() + bytes;
    if (bytes > list.remaining()) list.skip(bytes, "extra fields");
    bool has_zip64 = false;
    while (end - list.position() >= 4) {
      const std::uint64_t at = list.position();
      const std::uint16_t kind = list.read_u16("extra field");
      const std::uint64_t length = list.read_u16("length of an extra field");
      if (length > end - list.position())
        list.fail("extra field", fmt::format("{} bytes wanted, {} left", length, end - list.position()), at);
      const std::uint64_t next = list.position() + length;
      if (kind == kZip64Extra) {
        if (std::exchange(has_zip64, true)) list.fail("zip64 extra field", "it appears twice", at);
        for (std::uint64_t* number : {&member.bytes, &member.stored_bytes, &member.header}) {
          if (*number != kWide) continue;
          if (next - list.position() < 8) list.fail("zip64 extra field", "it is too short", at);
          *number = list.read_u64("zip64 extra field");
        }
      } else if (kind == kUnicodePathExtra && length > kUnicodePathHeadBytes) {
        // Python since 3.13 and Info-ZIP use this name instead.
        list.skip(kUnicodePathHeadBytes, "Unicode path");
        if (list.read_text(length - kUnicodePathHeadBytes, "Unicode path") != member.name)
          list.fail("Unicode path", fmt::format("another name than \"{}\"", member.name), at);
      }
      list.seek(next);
    }
    list.seek(end);
  }

  void require_readable(std::string_view name, std::uint16_t flags, std::uint64_t at) const {
    if ((flags & kEncrypted) != 0) refuse(name, "is encrypted", at);
    if ((flags & kPatch) != 0) refuse(name, "is a patch of other bytes", at);
  }

  static void require_valid_name(const ByteReader& list, std::string_view name, std::uint64_t at) {
    if (!is_zip_name(name))
      list.fail("name",
                fmt::format(
                    "\"{}\" is not allowed: expected a relative path without \"..\", backslashes and zero bytes", name),
                at);
  }

  // Throws if two members would become the same file when the archive is unpacked.
  void require_distinct_paths(const std::vector<ZipMember>& members, const std::vector<std::uint64_t>& entries) const {
    std::unordered_map<std::string_view, std::size_t> seen;
    seen.reserve(members.size());
    std::deque<std::string> plain_names;  // owns normalized names that differ from the members' names
    for (std::size_t i = 0; i < members.size(); ++i) {
      std::string_view name = members[i].name;
      if (std::string plain = normalize_zip_name(name); plain != name)
        name = plain_names.emplace_back(std::move(plain));
      if (name.ends_with('/')) name.remove_suffix(1);
      const auto [other, is_new] = seen.emplace(name, i);
      if (is_new) continue;
      const std::string& first = members[other->second].name;
      reader_.fail("directory",
                   first == members[i].name
                       ? fmt::format("the member {} appears twice", first)
                       : fmt::format("the members {} and {} have the same path", first, members[i].name),
                   entries[i]);
    }
  }

  // Reads the members' own headers. Throws if a byte before the directory belongs to no member, or to two.
  void read_headers(std::vector<ZipMember>& members, std::uint64_t directory) {
    std::vector<ZipMember*> order;
    order.reserve(members.size());
    for (ZipMember& member : members) {
      const std::uint64_t at = member.header;
      if (at > directory || directory - at < kHeaderBytes)
        reader_.fail(member.name, fmt::format("its header at {} is not before the directory at {}", at, directory),
                     std::min(at, source_->size()));
      order.push_back(&member);
    }
    std::ranges::sort(order, {}, &ZipMember::header);
    const auto require_no_gap = [&](std::string_view before, std::uint64_t begin, std::uint64_t end) {
      if (begin == end) return;
      reader_.fail(before, fmt::format("{} bytes before it belong to no member", end - begin), begin);
    };
    ByteReader headers(*records_, "zip", 0, directory);
    if (order.empty()) require_no_gap("directory", 0, directory);
    for (std::size_t i = 0; i < order.size(); ++i) {
      ZipMember& member = *order[i];
      if (i == 0) require_no_gap(member.name, 0, member.header);
      const bool has_descriptor = read_header(headers, member);
      const std::uint64_t end = member.begin + member.stored_bytes;
      const bool is_last = i + 1 == order.size();
      const std::string_view next_name = is_last ? "directory" : std::string_view(order[i + 1]->name);
      const std::uint64_t next = is_last ? directory : order[i + 1]->header;
      if (end > next) reader_.fail(next_name, fmt::format("shares bytes with the member {}", member.name), next);
      if (has_descriptor) {
        check_descriptor(headers, member, next);
      } else {
        require_no_gap(next_name, end, next);
      }
    }
  }

  // Reads a member's own header, and sets member.begin. Throws unless method, CRC-32, name and sizes match the
  // directory. Returns true if a descriptor follows the member's bytes.
  bool read_header(ByteReader& headers, ZipMember& member) {
    const std::uint64_t at = member.header;
    headers.seek(at);
    const auto scope = headers.open_scope(member.name);
    if (headers.read_u32("signature") != kHeader) headers.fail("signature", "expected PK\\3\\4", at);
    headers.skip(2, "version");
    const std::uint16_t flags = headers.read_u16("flags");
    require_readable(member.name, flags, at);
    const bool has_descriptor = (flags & kHasDescriptor) != 0;
    const std::uint16_t method = headers.read_u16("method");
    if (method != (member.deflated ? kDeflated : kStored))
      headers.fail("method",
                   fmt::format("found {}, but the directory states {}", method, member.deflated ? kDeflated : kStored),
                   at + 8);
    headers.skip(4, "time");
    const std::uint32_t crc32 = headers.read_u32("CRC-32");
    if (crc32 != member.crc32 && !(has_descriptor && crc32 == 0))
      headers.fail("CRC-32", fmt::format("found {:08x}, but the directory states {:08x}", crc32, member.crc32),
                   at + 14);
    HeaderSizes sizes;
    sizes.stored_bytes = headers.read_u32("stored bytes");
    sizes.bytes = headers.read_u32("bytes");
    const std::uint16_t name_bytes = headers.read_u16("length of the name");
    const std::uint16_t extra_bytes = headers.read_u16("length of the extra fields");
    if (headers.read_text(name_bytes, "name") != member.name)
      headers.fail("name", "it differs from the name in the directory", at + kHeaderBytes);
    check_sizes(headers, sizes, extra_bytes, member, has_descriptor);
    headers.skip(extra_bytes, "extra fields");
    member.begin = headers.position();
    if (member.stored_bytes > headers.remaining())
      headers.fail(
          "bytes",
          fmt::format("{} bytes wanted, {} left before the directory", member.stored_bytes, headers.remaining()),
          member.begin);
    return has_descriptor;
  }

  struct HeaderSizes {
    std::uint64_t stored_bytes = 0;
    std::uint64_t bytes = 0;
  };

  // Throws unless the sizes in a header, and in its zip64 field, are those of the directory. They may be 0 if a
  // descriptor has them. Requires: `headers` is at the extra fields, where it stays.
  static void check_sizes(ByteReader& headers, const HeaderSizes& narrow, std::uint16_t extra_bytes,
                          const ZipMember& member, bool has_descriptor) {
    const std::uint64_t extra = headers.position();
    const auto check = [&](std::string_view field, std::uint64_t found, std::uint64_t expected, std::uint64_t at) {
      if (found == expected || (has_descriptor && found == 0)) return;
      headers.fail(field, fmt::format("found {}, but the directory states {}", found, expected), at);
    };
    const auto wide = find_wide_sizes(headers, extra_bytes);
    if (wide) {
      check("bytes in the zip64 extra field", wide->bytes, member.bytes, extra);
      check("stored bytes in the zip64 extra field", wide->stored_bytes, member.stored_bytes, extra);
    }
    if (!wide || narrow.stored_bytes != kWide)
      check("stored bytes", narrow.stored_bytes, member.stored_bytes, member.header + 18);
    if (!wide || narrow.bytes != kWide) check("bytes", narrow.bytes, member.bytes, member.header + 22);
    headers.seek(extra);
  }

  // Finds the zip64 sizes among the extra fields. Other fields may be malformed: some programs align members with
  // zeros.
  static std::optional<HeaderSizes> find_wide_sizes(ByteReader& headers, std::uint16_t extra_bytes) {
    if (extra_bytes > headers.remaining()) headers.skip(extra_bytes, "extra fields");
    const std::uint64_t end = headers.position() + extra_bytes;
    while (end - headers.position() >= 4) {
      const std::uint16_t kind = headers.read_u16("extra field");
      const std::uint64_t length = headers.read_u16("length of an extra field");
      if (length > end - headers.position()) return std::nullopt;
      if (kind != kZip64Extra || length < 16) {
        headers.skip(length, "extra field");
        continue;
      }
      HeaderSizes sizes;
      sizes.bytes = headers.read_u64("zip64 extra field");
      sizes.stored_bytes = headers.read_u64("zip64 extra field");
      return sizes;
    }
    return std::nullopt;
  }

  // Checks a descriptor: CRC-32 and both sizes, of 32 or 64 bits, with or without a signature. It must end at `next`.
  static void check_descriptor(ByteReader& headers, const ZipMember& member, std::uint64_t next) {
    constexpr std::uint64_t kNarrowBytes = 12;
    constexpr std::uint64_t kWideBytes = 20;
    constexpr std::uint64_t kSignatureBytes = 4;
    const auto scope = headers.open_scope(member.name);
    const std::uint64_t at = member.begin + member.stored_bytes;
    const std::uint64_t length = next - at;
    headers.seek(at);
    const bool has_signature = length == kNarrowBytes + kSignatureBytes || length == kWideBytes + kSignatureBytes;
    if (!has_signature && length != kNarrowBytes && length != kWideBytes)
      headers.fail("descriptor", fmt::format("{} bytes after the member's, expected 12, 16, 20 or 24", length), at);
    const std::uint32_t signature = has_signature ? headers.read_u32("descriptor") : kDescriptor;
    const std::uint32_t crc32 = headers.read_u32("descriptor");
    const bool is_wide = length >= kWideBytes;
    const std::uint64_t stored_bytes = is_wide ? headers.read_u64("descriptor") : headers.read_u32("descriptor");
    const std::uint64_t bytes = is_wide ? headers.read_u64("descriptor") : headers.read_u32("descriptor");
    if (signature != kDescriptor || crc32 != member.crc32 || stored_bytes != member.stored_bytes ||
        bytes != member.bytes)
      headers.fail("descriptor",
                   fmt::format("CRC-32 {:08x}, {} bytes stored as {}; the directory states {:08x}, {} as {}", crc32,
                               bytes, stored_bytes, member.crc32, member.bytes, member.stored_bytes),
                   at);
  }

  [[noreturn]] void refuse(std::string_view member, std::string_view why, std::uint64_t at) const {
    throw Error(ErrorKind::unsupported, fmt::format("zip: the member {} {}", member, why), source_->name(), at);
  }

  const SourcePtr& source_;
  SourcePtr records_;
  ByteReader reader_;
  std::vector<std::uint64_t> other_ends_;  // offsets of earlier end signatures, as far back as readers search
};

}  // namespace

bool is_zip_name(std::string_view name) {
  constexpr std::size_t kMostBytes = 0xffff;
  if (name.empty() || name.size() > kMostBytes || name.front() == '/') return false;
  if (name.find_first_of(std::string_view("\\\0", 2)) != std::string_view::npos) return false;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (rest.substr(0, slash) == "..") return false;
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return true;
}

std::string normalize_zip_name(std::string_view name) {
  std::string plain;
  plain.reserve(name.size());
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view component = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (component.empty() || component == ".") continue;
    if (!plain.empty()) plain += '/';
    plain += component;
  }
  if (name.ends_with('/') && !plain.empty()) plain += '/';
  return plain;
}

ZipArchive::ZipArchive(SourcePtr source) : source_(std::move(source)), members_(Reader(source_).read_members()) {}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &ZipMember::name);
  return found == members_.end() ? nullptr : &*found;
}

BlobPtr ZipArchive::make_blob(const ZipMember& member, std::uint64_t skip) const {
  if (!member.deflated) return make_source_blob(source_, member.begin + skip, member.bytes - skip);
  return make_deflated_blob({source_, member.begin, member.stored_bytes}, member.bytes, member.crc32, skip);
}

SourcePtr ZipArchive::open(const ZipMember& member, std::uint64_t most, const std::string& name) const {
  if (member.bytes > most)
    throw Error(ErrorKind::unsupported,
                fmt::format("zip: {} has {} bytes, at most {} are read", member.name, member.bytes, most),
                source_->name(), member.begin);
  return Source::from_memory(read_all(*make_blob(member)), name.empty() ? source_->name() : name);
}

std::vector<Finding> ZipArchive::check_crc32() const {
  std::vector<std::optional<Finding>> found(members_.size());
  oneapi::tbb::parallel_for(std::size_t{0}, members_.size(), [&](std::size_t i) {
    const ZipMember& member = members_[i];
    try {
      Crc32 crc32;
      stream_chunks(*make_blob(member), [&](std::span<const std::byte> bytes) { crc32.update(bytes); });
      if (crc32.value() == member.crc32) return;
      found[i] = Finding{
          Severity::error,
          fmt::format("{}: the CRC-32 is {:08x}, the file states {:08x}", member.name, crc32.value(), member.crc32),
          source_->name(), member.begin};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file) throw;
      found[i] = Finding{Severity::error, fmt::format("{}: {}", member.name, error.message()), source_->name(),
                         error.offset()};
    }
  });
  std::vector<Finding> findings;
  for (std::optional<Finding>& finding : found) {
    if (finding) findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace poise
