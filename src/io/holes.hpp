// holes: ranges of a file that were never written. They read as zeros and take no space on disk.
#pragma once

#include <cstdint>

#include <poise/source.hpp>

namespace poise {

struct Written {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The first run of bytes from `offset` on that are not in a hole; an empty run at the source's end if there is none.
// Where holes are unknown (a source without a descriptor, or a file system that does not report them), all bytes from
// `offset` on. Requires: offset <= size().
Written next_written(const Source& source, std::uint64_t offset);

}  // namespace poise
