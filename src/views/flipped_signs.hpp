// flipped_signs: signed bytes as unsigned ones, plus 128.
#pragma once

#include <poise/blob.hpp>

namespace poise {

// Inverts the highest bit of every byte, when read.
BlobPtr make_flipped_signs_blob(BlobPtr blob);

}  // namespace poise
