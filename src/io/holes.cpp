#include "io/holes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace poise {

std::uint64_t next_written(const Source& source, std::uint64_t offset) {
  if (source.descriptor() < 0 || offset >= source.size()) return offset;
  const off_t found = ::lseek(source.descriptor(), static_cast<off_t>(offset), SEEK_DATA);  // nobody reads from the descriptor's own position
  if (found >= 0) return std::min(static_cast<std::uint64_t>(found), source.size());
  return errno == ENXIO ? source.size() : offset;
}

}  // namespace poise
