// Errors about what formats cannot hold. `format` begins the sentence: "alt".
#pragma once

#include <string_view>

#include <poise/model.hpp>

namespace poise {

// Throws unsupported with the tensor's storage and remedies. `why` may add a reason.
[[noreturn]] void refuse_tensor(std::string_view format, const Tensor& tensor, std::string_view why = {});

// Throws unsupported for a model whose config.json has keys that change the model. For formats without such keys.
void require_no_effects(std::string_view format, const Model& model);

}  // namespace poise
