// Files that people mistake for models, and the errors that name them: a Git LFS pointer, an HTML page, an archive.
#pragma once

#include <span>
#include <string_view>

#include <poise/error.hpp>
#include <poise/source.hpp>

namespace poise {

struct Lookalike {
  std::string_view start;  // how the file begins, in lower case
  ErrorKind kind;
  std::string_view message;
};
// Returns the table of lookalikes, in the order of the checks.
std::span<const Lookalike> list_lookalikes();

// Throws invalid_file or unsupported with the likely cause, at offset 0, if the source begins like one of these. Valid
// files may begin in the same way. Requires: the reader of the expected format has rejected the source.
void refuse_lookalike(const Source& source);

// Returns true if Python's tarfile accepts the first 512 bytes as the header of a tar archive. They may also be
// something else.
bool is_tar_archive(const Source& source);

// Returns the source, among those that a reader has opened, whose content an error is about; null if there is none.
SourcePtr find_refused_source(const Error& error, std::span<const SourcePtr> opened);

// Rejects a Git LFS pointer, for formats in which any text is valid, so that no reader would reject it.
void refuse_git_lfs_pointer(const Source& source);

}  // namespace poise
