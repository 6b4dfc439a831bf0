#include "formats/tiny_llama/layout.hpp"

#include "bytes/checked.hpp"
#include "family/tiny_llama.hpp"

namespace poise::tiny_llama {
namespace {

std::optional<std::uint64_t> array_bytes(const Shape& shape) {
  const auto elements = element_count(shape);
  const auto values = elements ? packed_bytes(DType::f32, *elements) : std::nullopt;
  return values ? checked_add(dimension_bytes(shape), *values) : std::nullopt;
}

std::optional<std::uint64_t> add_arrays(std::optional<std::uint64_t> sum, const std::vector<ExpectedTensor>& tensors) {
  for (const ExpectedTensor& tensor : tensors) {
    const auto bytes = array_bytes(tensor.shape);
    if (!sum || !bytes) return std::nullopt;
    sum = checked_add(*sum, *bytes);
  }
  return sum;
}

}  // namespace

std::optional<std::uint64_t> file_size(const Config& config) {
  const TensorTable& tensors = kTinyLlamaFamily.tensors;
  const auto layer = add_arrays(0, tensors.of_layer(config, 0));
  const auto layers = layer ? checked_mul(*layer, static_cast<std::uint64_t>(config.num_hidden_layers)) : std::nullopt;
  const auto with_header = layers ? checked_add(*layers, kHeaderBytes) : std::nullopt;
  return add_arrays(add_arrays(with_header, tensors.before_layers(config)), tensors.after_layers(config));
}

}  // namespace poise::tiny_llama
