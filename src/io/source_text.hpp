// The beginning of a source as text.
#pragma once

#include <span>
#include <string>

#include <poise/source.hpp>

namespace poise {

// The first `size` bytes. Requires: the source has them. The caller checks limits.
inline std::string read_text(const Source& source, std::uint64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace poise
