// Texts in NumPy's arrays, which become attributes.
#pragma once

#include <optional>

#include <poise/blob.hpp>
#include <poise/value.hpp>

#include "formats/numpy/array.hpp"

namespace poise::numpy {

// One text, or a list of them: of arrays of type U (UTF-32) or S (bytes) without dimensions or with one. Nothing for
// other arrays, for more than a megabyte, and where elements are not as many as the shape says, or no Unicode.
std::optional<Value> texts_of(const Header& header, const Blob& data);

}  // namespace poise::numpy
