// Reads zip archives: a list of members, each stored as it is or deflated (APPNOTE.TXT 6.3.10, with zip64).
//
//   a member     a header of 30 bytes that begins with "PK\3\4", its name, extra fields, its bytes; and a descriptor
//                ("PK\7\10", CRC-32 and sizes) if the header was written before these were known
//   ...
//   directory    for each member an entry of 46 bytes ("PK\1\2", the place of its header, ...), its name, extra fields,
//                a comment
//   zip64 end    56 bytes ("PK\6\6", ...) and a locator of 20 bytes ("PK\6\7", ...), if a number does not fit the end
//   end          22 bytes ("PK\5\6", the place of the directory, ...), and a comment
//
// Some readers begin at the end, others at the directory or at the headers, and some skip bytes that others read. So
// that all of them read the same archive, Poise requires that the records follow each other without a gap, that there
// is only one end record, and that headers and descriptors agree with the directory. Poise does not unpack to the disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/finding.hpp>

namespace poise {

struct ZipMember {
  std::string name;
  std::uint64_t header = 0;  // where its own header begins
  std::uint64_t begin = 0;   // where the bytes begin in the file
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  // decoded
  std::uint32_t crc32 = 0;  // the checksum of the decoded bytes
  bool deflated = false;
};

// Returns true if a member may have this name: a relative path of 1 to 65535 bytes without components "..", backslashes
// and zero bytes.
bool is_zip_name(std::string_view name);

// Removes empty components and "." from a name; one slash at its end stays.
std::string normalize_zip_name(std::string_view name);

// Holds a validated archive. Every byte of the file belongs to exactly one member, to the directory or to the end. No
// two members have the same path, and is_zip_name() accepts each name. Deflate can produce each stated size.
class ZipArchive {
 public:
  // Throws invalid_file and io. Throws unsupported for an archive in several files, and for members that are encrypted,
  // patches, symbolic links, or compressed by another method than deflate.
  explicit ZipArchive(SourcePtr source);

  const SourcePtr& source() const { return source_; }
  const std::vector<ZipMember>& members() const { return members_; }  // the order is that of the archive's directory
  const ZipMember* find(std::string_view name) const;                 // null if there is none
  // Returns the member's decoded bytes after the first `skip`, in place if they are not compressed. Requires:
  // skip <= member.bytes.
  BlobPtr make_blob(const ZipMember& member, std::uint64_t skip = 0) const;
  // Returns a source in memory with all decoded bytes of the member. If `name` is empty, the source has the archive's
  // name. Throws unsupported for more than `most` bytes.
  SourcePtr open(const ZipMember& member, std::uint64_t most, const std::string& name = {}) const;

  // Returns an error for each member whose bytes do not match the CRC-32 in the directory. Reads all bytes. Throws io.
  std::vector<Finding> check_crc32() const;

 private:
  SourcePtr source_;
  std::vector<ZipMember> members_;
};

}  // namespace poise

namespace poise::zip {

// The reader and the writer share these constants of zip archives.

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

inline constexpr std::uint16_t kMadeOnUnix = 3;  // high byte of "version made by": attributes hold a Unix mode
inline constexpr std::uint16_t kMadeOnMacOs = 19;
inline constexpr std::uint32_t kModeOfFileType = 0170000;
inline constexpr std::uint32_t kModeOfLink = 0120000;

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;
inline constexpr std::uint16_t kZip64Extra = 1;
inline constexpr std::uint16_t kUnicodePathExtra = 0x7075;     // a version, the CRC-32 of the name, and another name
inline constexpr std::uint64_t kUnicodePathHeadBytes = 1 + 4;  // the bytes before that name
inline constexpr std::uint32_t kWide = 0xffffffff;             // the number is in a zip64 record
inline constexpr std::uint16_t kWideCount = 0xffff;            // the number of members is in a zip64 record

}  // namespace poise::zip

namespace poise {

// The functions below read deflated bytes (RFC 1951) as one stream.
//
// The stream must decode to exactly the size and the CRC-32 that its container states. A broken stream and bytes after
// its end are errors, too. Memory: the decoder's window.

// Returns the most bytes that this number of deflated bytes can decode to: 1032 for each.
std::uint64_t compute_inflated_limit(std::uint64_t deflated_bytes);

// Makes a blob of the decoded bytes of a deflated stream after the first `skip`. Reading to the end throws invalid_file
// unless the stream decodes to `size` bytes with that CRC-32. Requires: skip <= size,
// size <= compute_inflated_limit(place.length).
BlobPtr make_deflated_blob(StoredRange place, std::uint64_t size, std::uint32_t crc32, std::uint64_t skip = 0);

}  // namespace poise
