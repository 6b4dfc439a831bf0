// Texts in NumPy's arrays; they become attributes.
#pragma once

#include <optional>

#include <poise/blob.hpp>
#include <poise/value.hpp>

#include "formats/numpy/array.hpp"

namespace poise::numpy {

// One text, or a list of them: from arrays of type U (UTF-32) or S (bytes) with at most one dimension. Nothing for
// other arrays, for more than a megabyte, and for invalid Unicode or a number of elements that does not fit the shape.
std::optional<Value> texts_of(const Header& header, const Blob& data);

}  // namespace poise::numpy
