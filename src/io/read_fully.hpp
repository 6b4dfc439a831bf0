// Reads exactly the bytes that a stream must have.
#pragma once

#include <cstddef>
#include <span>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

namespace poise {

// The next out.size() bytes. Throws internal when the stream has fewer, since a blob's size must be right.
inline void read_fully(BlobStream& stream, std::span<std::byte> out) {
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t got = stream.read(out.subspan(done));
    if (got == 0)
      throw Error(ErrorKind::internal, fmt::format("a blob ended {} bytes before its size", out.size() - done));
    done += got;
  }
}

}  // namespace poise
