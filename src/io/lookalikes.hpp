// Files that people mistake for models, and the errors that name them: a Git LFS pointer, an HTML page, an archive.
#pragma once

#include <span>
#include <string_view>

#include <poise/error.hpp>
#include <poise/source.hpp>

namespace poise {

struct Lookalike {
  std::string_view start;  // of the file, in lower case
  ErrorKind kind;
  std::string_view message;
};
// Returns them in the order of the checks.
std::span<const Lookalike> list_lookalikes();

// Throws invalid_file or unsupported with the likely cause, at offset 0, if the source begins like one of these. Valid
// files may begin so, too. Requires: the reader of the expected format has rejected the source.
void refuse_lookalike(const Source& source);

// Returns true if the first 512 bytes are the header of a tar archive as Python's tarfile reads it, whatever else they
// are.
bool is_tar_archive(const Source& source);

// Returns the source whose content an error is about, among those that a reader has opened; or null.
SourcePtr find_refused_source(const Error& error, std::span<const SourcePtr> opened);

// Rejects a Git LFS pointer early, where any text is valid and no reader would reject it.
void refuse_git_lfs_pointer(const Source& source);

}  // namespace poise
