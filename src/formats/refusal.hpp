// What formats say of a tensor that they cannot hold: how it is stored, and what helps.
#pragma once

#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

// Throws unsupported. `format` begins the sentence: "alt".
[[noreturn]] void refuse_tensor(std::string_view format, const Tensor& tensor);

}  // namespace poise
