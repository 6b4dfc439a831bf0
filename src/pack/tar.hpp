// tar archives, read: members one after the other, in blocks of 512 bytes (POSIX.1-2017, pax, "ustar"; GNU tar).
//
//   a member     a header: name 100, mode 8, uid 8, gid 8, size 12, time 12, checksum 8, type 1, link 100,
//                "ustar" and version 8, owner 32, group 32, device 16, prefix 155; then its bytes, filled up to a block
//   ...
//   two blocks of zeros
//
// Archives from before POSIX ("v7") end a header with the link: the rest is zeros.
//
// Numbers are octal digits; a size with the highest bit set is binary, big-endian. A member of type x gives attributes
// of the next one ("LENGTH KEY=VALUE\n"), one of type L its long name, one of type K its long link. What Solaris calls
// X is an x.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/finding.hpp>
#include <poise/source.hpp>

#include "pack/archive_links.hpp"

namespace poise {

struct TarMember {
  std::string name;
  std::uint64_t begin = 0;  // of its bytes in the file
  std::uint64_t bytes = 0;
};

struct TarListing {
  std::vector<TarMember> members;  // in the archive's order
  std::vector<ArchiveLink> links;  // symbolic ones, and hard ones that lead nowhere
  std::vector<Finding> warnings;
};

// The files of an archive: each is inside the archive, names of files and links are unique, plain and stay inside the
// folder. Of members with one name the last counts, with a warning; a hard link is a member with the bytes of another.
// Leaves out folders and devices; members of unknown types are files. Throws invalid_file, unsupported (sparse files;
// more than 100,000 links), io.
TarListing read_tar(const Source& source);

// True if the first block is a header, by its checksum.
bool is_tar(const Source& source);

// True if Python's tarfile, which takes more spellings of numbers, takes the first block for a header.
bool is_tar_for_python(const Source& source);

}  // namespace poise
