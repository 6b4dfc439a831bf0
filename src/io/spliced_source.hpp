// SplicedSource: a file with some of its bytes replaced, made of ranges of other sources.
#pragma once

#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/source.hpp>

namespace poise {

// Concatenates the pieces. Requires: each is inside its source.
SourcePtr make_spliced_source(std::string name, std::vector<StoredRange> pieces);

}  // namespace poise
