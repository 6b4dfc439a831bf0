// SplicedSource: what a file would be with some of its bytes replaced, made of pieces of other sources.
#pragma once

#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/source.hpp>

namespace poise {

// The pieces one after the other. Requires: each is inside its source.
SourcePtr make_spliced_source(std::string name, std::vector<StoredRange> pieces);

}  // namespace poise
