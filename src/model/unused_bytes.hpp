// Bytes of a file that no tensor refers to: padding, and what an audit should tell of because no reader looks at it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

#include "io/extents.hpp"

namespace poise {

// The ranges of one file that a model's parts take, in the order of the model.
std::vector<FileRange> ranges_of_parts(const Model& model, const Source& source);

// Adds a warning for each gap between the `known` ranges of a file, and before the first of them, that is more than
// padding, or is padding and not zero. Padding ends at a multiple of one of the `alignments` and is shorter than that;
// the first is what the format asks of every part. All are positive. Ranges may overlap; what is after the last of them
// is not looked at. Throws io.
void find_unused_bytes(const SourcePtr& source, std::vector<FileRange> known, std::span<const std::uint64_t> alignments,
                       std::vector<Finding>& findings);

}  // namespace poise
