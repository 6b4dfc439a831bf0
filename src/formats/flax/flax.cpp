#include "formats/flax/flax.hpp"

#include "formats/flax/read.hpp"

namespace poise {

const Format kFlax = {
    .info = {"flax", "parameters of Flax", ".msgpack"},
    .extensions = {},
    .options = {},
    .holds_bf16 = true,
    .sniff = flax::is_flax,
    .read = flax::read,
};

}  // namespace poise
