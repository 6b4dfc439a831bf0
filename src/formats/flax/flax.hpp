// Parameters of Flax (docs/formats/flax.md): flax_model.msgpack.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kFlax;

}  // namespace poise
