// NumPy's files: one array (.npy), and a zip archive of arrays (.npz).
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kNpy;
extern const Format kNpz;

}  // namespace poise
