#include "pack/zip.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/checked.hpp"
#include "io/source_range.hpp"
#include "pack/crc32.hpp"
#include "pack/deflate.hpp"
#include "pack/pump.hpp"
#include "pack/zip_records.hpp"

namespace poise {
namespace {

using namespace zip;

constexpr std::uint64_t kMostMembers = 2'000'000;
constexpr std::uint16_t kEncrypted = 1;
constexpr std::uint16_t kHasDescriptor = 8;

// Where the central directory is.
struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t members = 0;
  std::uint64_t end_record = 0;  // the first record after it
};

class Reader {
 public:
  explicit Reader(const SourcePtr& source)
      : source_(source), range_(*source, SourceRange::Records::scattered), reader_(range_, "zip") {}

  std::vector<ZipMember> read() {
    const Directory directory = find_directory();
    if (directory.begin > directory.end_record || directory.bytes > directory.end_record - directory.begin)
      reader_.fail("directory",
                   fmt::format("{} bytes at {} are not before its end record", directory.bytes, directory.begin),
                   directory.end_record);
    if (directory.members > kMostMembers || directory.members > directory.bytes / kDirectoryEntryBytes)
      reader_.fail("directory", fmt::format("{} members in {} bytes", directory.members, directory.bytes),
                   directory.end_record);
    std::vector<ZipMember> members;
    members.reserve(static_cast<std::size_t>(directory.members));
    std::vector<std::uint64_t> entries;  // where they are
    ByteReader list(range_, "zip", directory.begin, directory.begin + directory.bytes);
    for (std::uint64_t i = 0; i < directory.members; ++i) {
      const auto scope = list.scope("member", static_cast<std::int64_t>(i));
      entries.push_back(list.position());
      members.push_back(read_entry(list));
    }
    if (list.remaining() > 0)
      list.fail("directory", fmt::format("{} bytes after the last of its members", list.remaining()), list.position());
    require_distinct(members, entries);
    for (ZipMember& member : members) read_header(member, directory.begin);
    require_apart(members);
    return members;
  }

 private:
  // From the end: the record may have a comment after it, which ends the file.
  std::uint64_t find_end() {
    const std::uint64_t size = source_->size();
    const std::uint64_t tail = std::min<std::uint64_t>(size, kEndBytes + 0xffff);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tail));
    source_->read(size - tail, bytes);
    for (std::size_t at = bytes.size() < kEndBytes ? 0 : bytes.size() - kEndBytes + 1; at-- > 0;) {
      if (load_le<std::uint32_t>(bytes.data() + at) != kEnd) continue;
      if (load_le<std::uint16_t>(bytes.data() + at + 20) == bytes.size() - at - kEndBytes) return size - tail + at;
    }
    reader_.fail("end of the directory", "it is not there: the file is cut off, or something follows it", size);
  }

  Directory find_directory() {
    const std::uint64_t end = find_end();
    reader_.seek(end + 4);
    const auto disks = std::array{reader_.u16("number of this disk"), reader_.u16("disk of the directory")};
    const std::uint64_t here = reader_.u16("members on this disk");
    Directory directory;
    directory.end_record = end;
    directory.members = reader_.u16("members");
    directory.bytes = reader_.u32("bytes of the directory");
    directory.begin = reader_.u32("offset of the directory");
    if (auto wide = find_zip64(end)) return *wide;
    if (disks != std::array<std::uint16_t, 2>{0, 0} || here != directory.members)
      throw Error(ErrorKind::unsupported, "zip: the archive is split into several files", source_->name(), end);
    return directory;
  }

  std::optional<Directory> find_zip64(std::uint64_t end) {
    if (end < kZip64LocatorBytes) return std::nullopt;
    reader_.seek(end - kZip64LocatorBytes);
    if (reader_.u32("zip64 locator") != kZip64Locator) return std::nullopt;
    reader_.skip(4, "disk of the zip64 end");
    const std::uint64_t at = reader_.u64("offset of the zip64 end");
    if (end - kZip64LocatorBytes < kZip64EndBytes || at > end - kZip64LocatorBytes - kZip64EndBytes)
      reader_.fail("offset of the zip64 end", fmt::format("{} is not before its locator", at),
                   end - kZip64LocatorBytes + 8);
    reader_.seek(at);
    if (reader_.u32("zip64 end") != kZip64End) reader_.fail("zip64 end", "expected PK\\6\\6", at);
    reader_.skip(8 + 2 + 2 + 4 + 4, "zip64 end");
    Directory directory;
    directory.end_record = at;
    const std::uint64_t here = reader_.u64("members on this disk");
    directory.members = reader_.u64("members");
    directory.bytes = reader_.u64("bytes of the directory");
    directory.begin = reader_.u64("offset of the directory");
    if (here != directory.members)
      throw Error(ErrorKind::unsupported, "zip: the archive is split into several files", source_->name(), at);
    return directory;
  }

  ZipMember read_entry(ByteReader& list) {
    const std::uint64_t at = list.position();
    if (list.u32("signature") != kDirectoryEntry) list.fail("signature", "expected PK\\1\\2", at);
    const unsigned made_by = list.u16("version made by") >> 8U;
    list.skip(2, "version needed");
    const std::uint16_t flags = list.u16("flags");
    const std::uint16_t method = list.u16("method");
    list.skip(4, "time");
    ZipMember member;
    member.crc32 = list.u32("CRC-32");
    member.stored_bytes = list.u32("stored bytes");
    member.bytes = list.u32("bytes");
    const std::uint16_t name_bytes = list.u16("length of the name");
    const std::uint16_t extra_bytes = list.u16("length of the extra fields");
    const std::uint16_t comment_bytes = list.u16("length of the comment");
    list.skip(2 + 2, "attributes");
    const std::uint32_t mode = list.u32("attributes") >> 16U;
    member.is_link = (made_by == kMadeOnUnix || made_by == kMadeOnMacOs) && (mode & kModeOfFileType) == kModeOfLink;
    member.header = list.u32("offset");
    member.name = list.text(name_bytes, "name");
    read_extra(list, extra_bytes, member);
    list.skip(comment_bytes, "comment");
    if ((flags & kEncrypted) != 0) refuse(member, "is encrypted", at);
    if (method != kStored && method != kDeflated)
      refuse(member, fmt::format("is compressed by method {}; known are 0 (stored) and 8 (deflated)", method), at);
    member.deflated = method == kDeflated;
    require_name(list, member.name, at);
    if (!member.deflated && member.bytes != member.stored_bytes)
      list.fail(member.name, fmt::format("{} bytes are stored as {}", member.bytes, member.stored_bytes), at);
    if (member.deflated && member.bytes > most_inflated_bytes(member.stored_bytes))
      list.fail(member.name, fmt::format("{} bytes cannot inflate to {}", member.stored_bytes, member.bytes), at);
    return member;
  }

  // The 64-bit numbers, in order, of those whose 32 bits are all set.
  static void read_extra(ByteReader& list, std::uint64_t bytes, ZipMember& member) {
    const std::uint64_t end = list.position() + bytes;
    if (bytes > list.remaining()) list.skip(bytes, "extra fields");
    while (end - list.position() >= 4) {
      const std::uint64_t at = list.position();
      const std::uint16_t kind = list.u16("extra field");
      const std::uint64_t length = list.u16("length of an extra field");
      if (length > end - list.position())
        list.fail("extra field", fmt::format("{} bytes wanted, {} left", length, end - list.position()), at);
      const std::uint64_t next = list.position() + length;
      if (kind == kZip64Extra) {
        for (std::uint64_t* number : {&member.bytes, &member.stored_bytes, &member.header}) {
          if (*number == kWide && next - list.position() >= 8) *number = list.u64("zip64 extra field");
        }
      }
      list.seek(next);
    }
    list.seek(end);
  }

  static void require_name(const ByteReader& list, std::string_view name, std::uint64_t at) {
    if (!is_zip_name(name)) list.fail("name", fmt::format("\"{}\" leads out of the archive", name), at);
  }

  void require_distinct(const std::vector<ZipMember>& members, const std::vector<std::uint64_t>& entries) const {
    std::unordered_map<std::string_view, std::size_t> seen;
    seen.reserve(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!seen.emplace(members[i].name, i).second)
        reader_.fail("directory", fmt::format("the member {} comes twice", members[i].name), entries[i]);
    }
  }

  // A member's own header gives where its bytes begin; its other fields must match the directory.
  void read_header(ZipMember& member, std::uint64_t directory) {
    const std::uint64_t at = member.header;
    if (at > directory || directory - at < kHeaderBytes)
      reader_.fail(member.name, fmt::format("its header at {} is not before the directory at {}", at, directory),
                   std::min(at, source_->size()));
    ByteReader header(range_, "zip: " + member.name, at, directory);
    if (header.u32("signature") != kHeader) header.fail("signature", "expected PK\\3\\4", at);
    header.skip(2, "version");
    const std::uint16_t flags = header.u16("flags");
    const std::uint16_t method = header.u16("method");
    if (method != (member.deflated ? kDeflated : kStored))
      header.fail("method", fmt::format("{}, the directory says {}", method, member.deflated ? kDeflated : kStored),
                  at + 8);
    header.skip(4, "time");
    const std::uint32_t crc32 = header.u32("CRC-32");
    if ((flags & kHasDescriptor) == 0 && crc32 != member.crc32)
      header.fail("CRC-32", fmt::format("{:08x}, the directory says {:08x}", crc32, member.crc32), at + 14);
    header.skip(4 + 4, "sizes");
    const std::uint16_t name_bytes = header.u16("length of the name");
    const std::uint16_t extra_bytes = header.u16("length of the extra fields");
    if (header.text(name_bytes, "name") != member.name)
      header.fail("name", "another one than in the directory", at + kHeaderBytes);
    header.skip(extra_bytes, "extra fields");
    member.begin = header.position();
    if (member.stored_bytes > header.remaining())
      header.fail("bytes",
                  fmt::format("{} bytes wanted, {} left before the directory", member.stored_bytes, header.remaining()),
                  member.begin);
  }

  void require_apart(const std::vector<ZipMember>& members) const {
    std::vector<const ZipMember*> order;
    order.reserve(members.size());
    for (const ZipMember& member : members) order.push_back(&member);
    std::ranges::sort(order, {}, &ZipMember::header);
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->begin + order[i - 1]->stored_bytes > order[i]->header)
        reader_.fail(order[i]->name, fmt::format("shares bytes with the member {}", order[i - 1]->name),
                     order[i]->header);
    }
  }

  [[noreturn]] void refuse(const ZipMember& member, std::string_view why, std::uint64_t at) const {
    throw Error(ErrorKind::unsupported, fmt::format("zip: the member {} {}", member.name, why), source_->name(), at);
  }

  const SourcePtr& source_;
  SourceRange range_;
  ByteReader reader_;
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

ZipArchive::ZipArchive(SourcePtr source) : source_(std::move(source)), members_(Reader(source_).read()) {}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &ZipMember::name);
  return found == members_.end() ? nullptr : &*found;
}

HeldBlob ZipArchive::blob(const ZipMember& member, std::uint64_t skip) const {
  if (!member.deflated) return SourceBlob(source_, member.begin + skip, member.bytes - skip);
  return make_deflated_blob({source_, member.begin, member.stored_bytes}, member.bytes, member.crc32, skip);
}

SourcePtr ZipArchive::open(const ZipMember& member, std::uint64_t most, const std::string& name) const {
  if (member.bytes > most)
    throw Error(ErrorKind::unsupported,
                fmt::format("zip: {} has {} bytes, at most {} are read", member.name, member.bytes, most),
                source_->name(), member.begin);
  return Source::from_memory(read_all(*blob(member)), name.empty() ? source_->name() : name);
}

std::vector<Finding> ZipArchive::check_crc32() const {
  std::vector<std::optional<Finding>> found(members_.size());
  oneapi::tbb::parallel_for(std::size_t{0}, members_.size(), [&](std::size_t i) {
    const ZipMember& member = members_[i];
    try {
      Crc32 crc32;
      stream_chunks(*blob(member), [&](std::span<const std::byte> bytes) { crc32.update(bytes); });
      if (crc32.value() == member.crc32) return;
      found[i] = Finding{
          Severity::error,
          fmt::format("{}: the CRC-32 is {:08x}, the file says {:08x}", member.name, crc32.value(), member.crc32),
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
