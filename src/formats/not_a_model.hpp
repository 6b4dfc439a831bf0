// The files people open by mistake, and what to tell them once no format is found in them, or its reader has refused
// them.
#pragma once

#include <span>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "formats/input.hpp"

namespace poise {

// Throws invalid_file or unsupported with the likely cause when the content is something well known that is no model:
// an empty file, a Git LFS pointer, an HTML page, a PyTorch or other archive.
// Sound files may begin as these do: requires that no format's magic is found, and that the reader which the name
// promises, if there is one, has refused the file.
void refuse_what_is_no_model(const Input& input);

// The same for one of several files that a reader has opened: the one that its error is about, unless that has the
// magic of a format.
void refuse_what_is_no_model(const Error& error, std::span<const SourcePtr> opened);

}  // namespace poise
