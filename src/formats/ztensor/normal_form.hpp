// Unicode's normal form C, for names in canonical zTensor 2 files.
#pragma once

#include <string>
#include <string_view>

namespace poise::ztensor {

// Returns invalid UTF-8 unchanged.
std::string normal_form_c(std::string_view text);

}  // namespace poise::ztensor
