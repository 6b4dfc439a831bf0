// Makes sources of other sources.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/source.hpp>

namespace poise {

// Returns the first `size` bytes as text. Requires: the source has them. The caller limits `size`.
inline std::string read_text(const Source& source, std::uint64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// Makes a source that reads the same bytes by system calls. For small records that are far apart, a call is faster than
// a page fault. Returns a source without a descriptor unchanged.
SourcePtr make_unmapped_source(SourcePtr whole);

// Makes a source of a range of another one, without copying. Requires: the range is inside the source.
SourcePtr make_source_part(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name);

// Makes a source that concatenates pieces of others, such as a file with some of its bytes replaced. Requires: each
// piece is inside its source.
SourcePtr make_spliced_source(std::string name, std::vector<StoredRange> pieces);

}  // namespace poise
