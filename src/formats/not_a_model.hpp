// Files that people open by mistake, and their errors, for inputs that no reader accepts.
#pragma once

#include <span>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "formats/input.hpp"

namespace poise {

// Throws invalid_file or unsupported with the likely cause for well-known content that is not a model: an empty file, a
// Git LFS pointer, an HTML page, a PyTorch or other archive. Valid files may begin in the same way. Requires: no
// format's magic matches, and the reader that the name promises, if there is one, has rejected the file.
void refuse_non_model(const Input& input);

// The same for one of several files that a reader has opened: the one that its error is about, unless it has a format's
// magic.
void refuse_non_model(const Error& error, std::span<const SourcePtr> opened);

}  // namespace poise
