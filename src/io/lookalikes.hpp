// What people have in a file's place by mistake, and what to tell them: a Git LFS pointer, an HTML page, an archive.
#pragma once

#include <poise/source.hpp>

namespace poise {

// Throws invalid_file or unsupported with the likely cause, at offset 0, where the source begins as one of these does.
void refuse_lookalike(const Source& source);

}  // namespace poise
