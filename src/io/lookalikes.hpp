// Recognizes files that people mistake for models, such as a Git LFS pointer, an HTML page or an archive.
#pragma once

#include <span>
#include <string_view>

#include <poise/error.hpp>
#include <poise/source.hpp>

namespace poise {

struct Lookalike {
  std::string_view start;  // how the file begins after white space, in lower case
  ErrorKind kind;
  std::string_view message;
};
// Returns the table of lookalikes, in the order of the checks.
std::span<const Lookalike> list_lookalikes();

// Throws invalid_file or unsupported with the likely cause, at offset 0, if the source begins like a row of
// list_lookalikes() or like a tar archive. Valid files may begin in the same way. Requires: the reader of the expected
// format has rejected the source.
void refuse_lookalike(const Source& source);

// Returns true if the first 512 bytes look like the header of a tar archive: they have its magic, or a checksum that
// Python's tarfile accepts. Other files may look so, too.
bool is_tar_archive(const Source& source);

// Returns the source, among those that a reader has opened, whose content an error is about; null if there is none.
SourcePtr find_refused_source(const Error& error, std::span<const SourcePtr> opened);

// Throws invalid_file for a Git LFS pointer. Readers that accept any text call this, since they would accept a pointer.
void refuse_git_lfs_pointer(const Source& source);

}  // namespace poise
