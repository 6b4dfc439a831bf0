#include "formats/llama2c/llama2c.hpp"

#include "bytes/little_endian.hpp"
#include "formats/llama2c/header.hpp"
#include "formats/llama2c/read.hpp"

namespace poise {
namespace {

bool sniff(const Input& input) {
  const auto bytes = first_bytes(input, sizeof llama2c::kMagic);
  if (bytes.size() < sizeof llama2c::kMagic) return false;
  return load_le<std::uint32_t>(bytes.data()) == llama2c::kMagic || llama2c::is_version_0(*input.source);
}

}  // namespace

const Format kLlama2c = {
    .info = {"llama2c", "weights of llama2.c", ".bin"},
    .extensions = {},
    .options = {},
    .holds_bf16 = false,
    .sniff = sniff,
    .read = llama2c::read,
};

}  // namespace poise
