// GGUF: the files of llama.cpp and what is built on it.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kGguf;

}  // namespace poise
