// Arrays of Python objects, whose elements NumPy stores as a pickle and loads with numpy.load(allow_pickle=True).
#pragma once

#include <vector>

#include <poise/finding.hpp>

#include "formats/numpy/array.hpp"
#include "formats/pickle_files.hpp"

namespace poise::numpy {

// Errors if the elements are a pickle that has Python do more than make plain data, that cannot be followed to its end,
// or if they are of a type that NumPy may take for objects. None for numbers, texts, times and raw bytes. `data`: what
// comes after the header. Throws io.
std::vector<Finding> check_objects(const Header& header, const pytorch::PickleFile& data);

}  // namespace poise::numpy
