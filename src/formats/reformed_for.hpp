// reformed_for: a model whose weights are stored as files of a format have them.
#pragma once

#include <optional>

#include "family/family.hpp"
#include "formats/format.hpp"

namespace poise {

// Stores weights as the readers of the format take them (Family::reformed()), and as their parts those matrices of a
// reversible quantization scheme whose layout the format does not hold. With `numbers` codes become numbers, where a
// later cast would not do. std::nullopt if the model stays as it is. Throws what Family::reformed() throws.
std::optional<Reformed> reformed_for(const Format& format, const Model& model, bool numbers);

}  // namespace poise
