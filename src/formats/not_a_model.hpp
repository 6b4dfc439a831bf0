// The files people open by mistake, and what to tell them once no format is found in them.
#pragma once

#include "formats/input.hpp"

namespace poise {

// Throws invalid_file or unsupported with the likely cause when the content is something well known that is no model:
// an empty file, a Git LFS pointer, an HTML page, a PyTorch or other archive.
void refuse_what_is_no_model(const Input& input);

}  // namespace poise
