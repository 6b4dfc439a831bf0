#include "formats/onnx/onnx.hpp"

#include "formats/onnx/read.hpp"

namespace poise {
namespace {

// The version comes first, as all programs write it.
bool sniff(const Input& input) {
  const auto bytes = first_bytes(input, 1);
  constexpr std::byte kVersionTag{0x08};
  return !bytes.empty() && bytes[0] == kVersionTag && onnx::is_model(*input.source);
}

}  // namespace

const Format kOnnx = {
    .info = {"onnx", "an ONNX model", ".onnx"},
    .extensions = {},
    .options = {},
    .holds_bf16 = true,
    .sniff = sniff,
    .read = onnx::read,
};

}  // namespace poise
