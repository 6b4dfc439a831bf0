// holes: the parts of a file that were never written. They read as zeros and take no room on the disk.
#pragma once

#include <cstdint>

#include <poise/source.hpp>

namespace poise {

// Where the first byte from `offset` on stands that is not in a hole; the source's size when there is none. Where holes are not known
// (a source without a descriptor, a file system that does not tell), `offset` itself. Requires: offset <= size().
std::uint64_t next_written(const Source& source, std::uint64_t offset);

}  // namespace poise
