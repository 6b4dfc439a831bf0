// Reading a stream for bytes that have to be there.
#pragma once

#include <cstddef>
#include <span>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

namespace poise {

// The next out.size() bytes. Throws internal when the stream has fewer: a blob's size has to be true.
inline void read_fully(BlobStream& stream, std::span<std::byte> out) {
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t got = stream.read(out.subspan(done));
    if (got == 0)
      throw Error(ErrorKind::internal, fmt::format("a blob ended {} bytes before its size", out.size() - done));
    done += got;
  }
}

}  // namespace poise
