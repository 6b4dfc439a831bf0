// Numbers that JSON cannot represent.
#pragma once

#include <string>

namespace poise::cli {

// Throws unsupported: "WHAT is NaN: the weights hold values that are not finite, or overflow".
[[noreturn]] void refuse_non_finite(const std::string& what, double value, const std::string& path);

}  // namespace poise::cli
