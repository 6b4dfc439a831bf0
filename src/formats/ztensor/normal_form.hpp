// Unicode's normal form C, which the names of a canonical zTensor 2 file have.
#pragma once

#include <string>
#include <string_view>

namespace poise::ztensor {

// Text that is no UTF-8 comes back unchanged.
std::string normal_form_c(std::string_view text);

}  // namespace poise::ztensor
