// Bytes of a file that no tensor refers to: padding, and bytes that an audit reports because no reader looks at them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

#include "io/extents.hpp"

namespace poise {

// Returns the ranges of one file that a model's parts take, in the model's order.
std::vector<FileRange> list_part_ranges(const Model& model, const Source& source);

// Adds a warning for each gap before or between the `known` ranges of a file that is longer than padding, or is padding
// with bytes other than zero. Padding ends at a multiple of one of the `alignments` and is shorter than that; the first
// alignment is the one that the format asks of every part. All are positive. Ranges may overlap. Bytes after the last
// range are not checked. Throws io.
void find_unused_bytes(const SourcePtr& source, std::vector<FileRange> known, std::span<const std::uint64_t> alignments,
                       std::vector<Finding>& findings);

}  // namespace poise
