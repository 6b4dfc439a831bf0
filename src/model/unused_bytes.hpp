// Finds bytes of a file that no tensor refers to. An audit reports those that are not padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

#include "io/extents.hpp"

namespace poise {

// Returns the ranges of a file that hold a model's parts, in the model's order.
std::vector<FileRange> list_part_ranges(const Model& model, const Source& source);

// Adds a warning for each gap before or between the `known` ranges of a file if the gap is longer than padding, or has
// bytes other than zero. Padding ends at a multiple of one of the `alignments` and is shorter than this alignment. The
// format requires the first alignment for every part. All are positive. Ranges may overlap. Does not check the bytes
// after the last range. Throws io.
void find_unused_bytes(const SourcePtr& source, std::vector<FileRange> known, std::span<const std::uint64_t> alignments,
                       std::vector<Finding>& findings);

}  // namespace poise
