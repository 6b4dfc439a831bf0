// Decodes poise.codebook/1: codes of four bits, each an index into a codebook, with a scale for each block.
//
//   data       u8, two codes a byte, the element with the even index in the low half
//   codebook   f32, 16 numbers
//   scales     f32, one for each `block` elements in row-major order; the last block may be short
//
// value = codebook[code] * scale.
#include "views/groups.hpp"

#include <vector>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "io/threads.hpp"
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

class CodebookBlob final : public FloatBlob {
 public:
  explicit CodebookBlob(const Tensor& tensor)
      : FloatBlob(tensor.elements()),
        data_(tensor.require("data").blob),
        codebook_(tensor.require("codebook").blob),
        scales_(tensor.require("scales").blob),
        block_(get_codebook_block(tensor)) {
    check_codebook(tensor);
  }

  bool seekable() const override { return data_->seekable(); }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    const auto loaded = kept_.get([this] { return std::make_shared<const Loaded>(codebook_, scales_); });
    std::vector<std::byte> bytes(static_cast<std::size_t>((first + out.size() + 1) / 2 - first / 2));
    data_->read(first / 2, bytes);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t element = first + i;
      const auto pair = std::to_integer<unsigned>(bytes[static_cast<std::size_t>(element / 2 - first / 2)]);
      out[i] = loaded->codebook.at<float>(pair >> 4 * (element % 2) & 15U) * loaded->scales.at<float>(element / block_);
    }
  }
  void drop_caches() const override { kept_.release(); }

 private:
  struct Loaded {
    Loaded(const BlobPtr& book, const BlobPtr& factors) : codebook(book), scales(factors) {}
    LoadedBlob codebook;
    LoadedBlob scales;
  };

  BlobPtr data_;
  BlobPtr codebook_;
  BlobPtr scales_;
  std::uint64_t block_;
  LazyValue<const Loaded> kept_;
};

// Returns the rules for values: the last high half is zero if the number of elements is odd.
ValueRules make_codebook_rules(const Tensor& tensor, const Part& part) {
  ValueRules rules{part.dtype};
  if (part.role == "data" && tensor.elements() % 2 != 0) rules.last_half = ValueRules::LastHalf::unused;
  return rules;
}

BlobPtr make_codebook_elements(const Tensor& tensor) { return std::make_shared<CodebookBlob>(tensor); }
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
