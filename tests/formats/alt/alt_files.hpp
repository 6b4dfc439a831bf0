// Helpers for tests of ALT files: golden files, files in memory, errors.
#pragma once

#include "support/annotated_hex.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"

namespace poise {

using support::error_of;
using support::read_annotated_hex;
using support::written;

inline Model read(std::vector<std::byte> file) { return support::read(std::move(file), "test.alt"); }

}  // namespace poise
