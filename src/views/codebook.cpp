// Decodes poise.codebook/1: codes of four bits, each an index into a codebook, with a scale for each block.
//
//   data       u8, two codes a byte, the element with the even index in the low half
//   codebook   f32, 16 numbers
//   scales     f32, one for each `block` elements in row-major order; the last block may be short
//
// value = codebook[code] * scale.
#include "views/groups.hpp"

#include <array>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "tensor/part_types.hpp"
#include "views/computed_blob.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

struct CodebookScheme {
  std::uint64_t block;  // elements that share a scale
};

constexpr std::string_view kBlock = "block";
constexpr std::uint64_t kNumbers = 16;

std::optional<TensorLayout> read_codebook(const Tensor& tensor, std::string_view name) {
  if (name != kCodebook) return std::nullopt;
  return make_codebook_layout(require_positive_attribute(tensor, kBlock));
}

BlobPtr make_codebook_elements(const Tensor& tensor) {
  check_codebook(tensor);
  const auto compute = [block = get_codebook_block(tensor)](const Blob& data, std::span<const LoadedBlob> kept,
                                                            std::uint64_t first, std::span<float> out) {
    std::array<std::byte, kBlockSize / 2 + 1> bytes;
    data.read(first / 2, std::span(bytes).first(static_cast<std::size_t>((first + out.size() + 1) / 2 - first / 2)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t element = first + i;
      const auto pair = std::to_integer<unsigned>(bytes[static_cast<std::size_t>(element / 2 - first / 2)]);
      out[i] = kept[0].at<float>(pair >> 4 * (element % 2) & 15U) * kept[1].at<float>(element / block);
    }
  };
  return make_float_blob(tensor.elements(), tensor.require("data").blob,
                         {tensor.require("codebook").blob, tensor.require("scales").blob}, compute);
}

// Returns the rules for values: if the number of elements is odd, the high half of the last byte must be zero.
ValueRules make_codebook_rules(const Tensor& tensor, const Part& part) {
  ValueRules rules{part.dtype};
  if (part.role == "data" && tensor.elements() % 2 != 0) rules.last_half = ValueRules::LastHalf::unused;
  return rules;
}

std::string describe_codebook_type(const Tensor& tensor) {
  return fmt::format("codebook4:{}", get_codebook_block(tensor));
}
bool have_same_block_size(const Tensor& a, const Tensor& b) { return get_codebook_block(a) == get_codebook_block(b); }
bool is_block_attribute(std::string_view attribute) { return attribute == kBlock; }

}  // namespace

const LayoutType layouts::codebook = {
    .name = kCodebook,
    .quantized = true,
    .read = read_codebook,
    .check = check_codebook,
    .needs_known_parts = true,
    .value_rules = make_codebook_rules,
    .has_float_elements = has_known_types,
    .elements = make_codebook_elements,
    .stored_type = describe_codebook_type,
    .same_scheme = have_same_block_size,
    .is_scheme_attribute = is_block_attribute,
};

TensorLayout make_codebook_layout(std::uint64_t block) {
  return TensorLayout::with_scheme(kCodebook, CodebookScheme{block});
}

Attributes make_codebook_attributes(std::uint64_t block) { return {{std::string(kBlock), block}}; }

std::uint64_t get_codebook_block(const Tensor& tensor) { return tensor.layout.scheme<CodebookScheme>()->block; }

void check_codebook(const Tensor& tensor) {
  require_roles(tensor, {"data", "codebook", "scales"});
  if (!has_known_types(tensor)) return;
  const std::uint64_t elements = tensor.elements();
  const std::uint64_t block = get_codebook_block(tensor);
  require_type(tensor, tensor.require("data"), DType::u8);
  require_elements(tensor, tensor.require("data"), elements / 2 + elements % 2);
  require_type(tensor, tensor.require("codebook"), DType::f32);
  require_elements(tensor, tensor.require("codebook"), kNumbers);
  require_type(tensor, tensor.require("scales"), DType::f32);
  require_elements(tensor, tensor.require("scales"), ceil_div(elements, block));
}

}  // namespace poise
