#include "io/holes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace poise {

Written next_written(const Source& source, std::uint64_t offset) {
  const Written all{offset, source.size()};
  if (source.descriptor() < 0 || offset >= source.size()) return all;
  const off_t begin = ::lseek(source.descriptor(), static_cast<off_t>(offset),
                              SEEK_DATA);  // reads never use the descriptor's position
  if (begin < 0) return errno == ENXIO ? Written{source.size(), source.size()} : all;
  const off_t end = ::lseek(source.descriptor(), begin, SEEK_HOLE);
  return {std::min(static_cast<std::uint64_t>(begin), source.size()),
          end < 0 ? source.size() : std::min(static_cast<std::uint64_t>(end), source.size())};
}

}  // namespace poise
