// flipped_signs: signed bytes as unsigned ones, 128 larger.
#pragma once

#include <poise/blob.hpp>

namespace poise {

// Every byte with its highest bit inverted, computed when it is read.
BlobPtr make_flipped_signs_blob(BlobPtr blob);

}  // namespace poise
