// source_part: a range of a source as a source of its own.
#pragma once

#include <string>

#include <poise/source.hpp>

namespace poise {

// Borrows the same bytes. Requires: the range is inside the source.
SourcePtr make_source_part(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name);

}  // namespace poise
