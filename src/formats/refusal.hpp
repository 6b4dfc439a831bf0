// What formats say of what they cannot hold. `format` begins the sentence: "alt".
#pragma once

#include <string_view>

#include <poise/model.hpp>

namespace poise {

// Throws unsupported, telling how the tensor is stored, with what helps. `why` may say more.
[[noreturn]] void refuse_tensor(std::string_view format, const Tensor& tensor, std::string_view why = {});

// Throws unsupported for a model whose config.json has keys without which it is another model. For formats that hold no
// such keys.
void require_no_effects(std::string_view format, const Model& model);

}  // namespace poise
