// The general section of ALT v2: seven texts about the model.
#pragma once

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Requires: the reader is past section_size. Leaves it past the last field.
Card read_general(FileReader& reader);

}  // namespace poise::alt
