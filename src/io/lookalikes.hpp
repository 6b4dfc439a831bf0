// What people have in a file's place by mistake, and what to tell them: a Git LFS pointer, an HTML page, an archive.
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
// In the order in which they are asked.
std::span<const Lookalike> lookalikes();

// Throws invalid_file or unsupported with the likely cause, at offset 0, where the source begins as one of these does.
// Sound files may begin so, too: requires that the reader which the file is meant for has refused it.
void refuse_lookalike(const Source& source);

// Of the sources that a reader has opened, the one that an error is about, if it tells of the source's content. Null:
// none.
SourcePtr refused_source(const Error& error, std::span<const SourcePtr> opened);

// A pointer in place of the file is told at once where the file may be any text, so that no reader refuses it.
void refuse_git_lfs_pointer(const Source& source);

}  // namespace poise
