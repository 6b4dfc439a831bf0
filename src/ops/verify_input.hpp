// verify() of a file or directory that is open already, such as a stream.
#pragma once

#include <poise/progress.hpp>
#include <poise/verify.hpp>

#include "formats/input.hpp"

namespace poise {

// Does what verify() does, without the comparison with names of the Hub's cache.
VerifyReport verify_input(const Input& input, const ReadOptions& options, const Progress& progress);

}  // namespace poise
