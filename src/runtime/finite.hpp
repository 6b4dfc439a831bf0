// Scores that are not numbers.
#pragma once

#include <string>

namespace poise {

// Throws unsupported: "WHAT is NaN: the weights hold values that are not finite, or overflow". The path may be empty.
[[noreturn]] void refuse_non_finite(const std::string& what, double value, const std::string& path = {});

}  // namespace poise
