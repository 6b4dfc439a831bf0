// Walks through an ALT file, from the first section to the end marker.
#pragma once

#include <functional>
#include <span>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Calls `read` for each section with the reader past its size; `read` leaves the reader past the section's padding.
// Sections come in the order of `order`, each at most once; a missing one gives a warning. Then checks the end marker
// of `end_bytes` (4 or 8; the other width gives a warning), and the end of the file.
void read_sections(FileReader& reader, std::span<const Section> order, std::uint64_t end_bytes,
                   const std::function<void(Section section, const OpenSection& open)>& read);

}  // namespace poise::alt
