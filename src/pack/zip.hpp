// zip archives, read: a list of members, each stored as it is or deflated (APPNOTE.TXT 6.3.10, zip64 included).
//
//   a member     "PK\3\4", a header of 30 bytes, its name, extra fields, its bytes
//   ...
//   directory    for each member "PK\1\2", 46 bytes that say where it begins, its name, extra fields, a comment
//   zip64 end    "PK\6\6", 56 bytes, and its locator "PK\6\7", 20 bytes: where a number needs more than 32 bits
//   end          "PK\5\6", 22 bytes that say where the directory is, and a comment
//
// The directory decides. Nothing is ever unpacked to a disk.
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
  std::uint64_t begin = 0;   // of its bytes in the file
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;  // decoded
  std::uint32_t crc32 = 0;  // of the decoded bytes
  bool deflated = false;
};

// Can a member have this name? One that leads to another folder, or is no path, can not.
bool is_zip_name(std::string_view name);

// What can be believed of an archive: each member is inside the file, before the directory, and shares no byte with
// another one; names come once and lead to no other folder; sizes are what stored or deflated bytes can have.
class ZipArchive {
 public:
  // Throws invalid_file, unsupported (members that are encrypted, or compressed in other ways), io.
  explicit ZipArchive(SourcePtr source);

  const SourcePtr& source() const { return source_; }
  const std::vector<ZipMember>& members() const { return members_; }  // in the directory's order
  const ZipMember* find(std::string_view name) const;                 // null: there is none
  // Its decoded bytes behind the first `skip`: in place where they are stored. Requires: skip <= member.bytes.
  HeldBlob blob(const ZipMember& member, std::uint64_t skip = 0) const;
  // All of them: what is deflated is decoded. Throws unsupported where it has more than `most` bytes.
  SourcePtr open(const ZipMember& member, std::uint64_t most) const;

  // The members whose bytes do not have the CRC-32 that the directory says. Reads all bytes. Throws io.
  std::vector<Finding> check_crc32() const;

 private:
  SourcePtr source_;
  std::vector<ZipMember> members_;
};

}  // namespace poise
