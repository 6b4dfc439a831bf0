// Decodes groups of codes for all schemes that read_group_scheme() reads.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/threads.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"
#include "tensor/group_scheme.hpp"
#include "tensor/part_types.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// Holds all words of a part, mapped or in memory, and unpacks codes from them.
class CodeWords {
 public:
  CodeWords(const GroupScheme& scheme, BlobPtr words, const Shape& shape)
      : bits_(scheme.bits),
        per_word_(scheme.per_word),
        word_bytes_(info(scheme.word).bits / 8),
        high_bits_first_(scheme.high_bits_first),
        words_(std::move(words)) {
    for (std::size_t d = scheme.packing_axis + 1; d < shape.size(); ++d) stride_ *= shape[d];
    along_ = shape[scheme.packing_axis];
    flat_ = scheme.packing_axis + 1 == shape.size();
  }

  // Unpacks the codes of elements that are neighbours in row-major order.
  void unpack(std::uint64_t first, std::span<std::uint32_t> codes) const {
    const bool as_bytes = flat_ && !high_bits_first_ && std::size_t{per_word_} * bits_ == 8 * word_bytes_;
    if (as_bytes && bits_ == 8) {
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes[i] = std::to_integer<std::uint32_t>(words_.bytes()[first + i]);
    } else if (as_bytes && bits_ == 4) {
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes[i] = std::to_integer<std::uint32_t>(words_.bytes()[(first + i) / 2]) >> (4 * ((first + i) % 2)) & 15;
    } else {
      for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint32_t>(at(first + i));
    }
  }

  std::uint64_t at(std::uint64_t element) const {
    if (flat_) return extract_code(element / per_word_, static_cast<unsigned>(element % per_word_));
    // Neighbours along the packing axis share a word. The words are a row-major array that has the tensor's shape, with
    // the packing axis divided by per_word_.
    const std::uint64_t inner = element % stride_;
    const std::uint64_t middle = element / stride_ % along_;
    const std::uint64_t outer = element / stride_ / along_;
    const std::uint64_t word = (outer * (along_ / per_word_) + middle / per_word_) * stride_ + inner;
    return extract_code(word, static_cast<unsigned>(middle % per_word_));
  }

 private:
  std::uint64_t extract_code(std::uint64_t word, unsigned place) const {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < word_bytes_; ++i)
      bits |= std::to_integer<std::uint64_t>(words_.bytes()[word * word_bytes_ + i]) << (8 * i);
    const unsigned shift = bits_ * (high_bits_first_ ? per_word_ - 1 - place : place);
    return bits >> shift & ((std::uint64_t{1} << bits_) - 1);
  }

  unsigned bits_;
  unsigned per_word_;
  std::size_t word_bytes_;
  bool high_bits_first_;
  bool flat_ = true;
  std::uint64_t stride_ = 1;
  std::uint64_t along_ = 0;
  LoadedBlob words_;
};

std::vector<float> read_numbers(const Part& part) {
  const LoadedBlob loaded(part.blob);
  if (is_integer(part.dtype)) {
    return visit_integer(part.dtype, [&](auto zero) {
      using T = decltype(zero);
      std::vector<float> numbers(loaded.bytes().size() / sizeof(T));
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(loaded.at<T>(i));
      return numbers;
    });
  }
  std::vector<float> numbers(loaded.bytes().size() * 8 /
                             info(part.dtype).bits);  // one more than there are, if the last byte is half empty
  widen(part.dtype, loaded.bytes().data(), numbers);
  return numbers;
}

// Decodes codes with the scales and zero points of their groups.
class GroupNumbers {
 public:
  // `index` (u32) has the group of each position along the axis; null if the elements of a group are neighbours.
  GroupNumbers(const Tensor& tensor, const GroupScheme& scheme, const BlobPtr& index) : scheme_(scheme) {
    const Part& scales = tensor.require("scales");
    scales_ = read_numbers(scales);
    for (std::size_t d = scheme.axis + 1; d < tensor.shape.size(); ++d) stride_ *= tensor.shape[d];
    along_ = tensor.shape[scheme.axis];
    groups_along_ = scheme.group_size == 0 ? along_ : along_ / scheme.group_size;
    if (scheme.zeros == GroupScheme::Zeros::plain) zeros_ = read_numbers(tensor.require("zeros"));
    if (scheme.zeros == GroupScheme::Zeros::packed) unpack_zeros(tensor);
    if (index) index_ = read_group_index(tensor, scheme, *index);
  }

  // Decodes codes of elements that are neighbours in row-major order.
  void decode(std::uint64_t first, std::span<const std::uint32_t> codes, std::span<float> out) const {
    for (std::size_t i = 0; i < codes.size();) {
      const auto group = static_cast<std::size_t>(find_group(first + i));
      const std::size_t end = stride_ == 1 && scheme_.group_size > 0 && index_.empty()
                                  ? static_cast<std::size_t>(std::min<std::uint64_t>(
                                        codes.size(), i + scheme_.group_size - (first + i) % scheme_.group_size))
                                  : i + 1;
      for (; i < end; ++i) out[i] = (static_cast<float>(codes[i]) - get_zero(group)) * scales_[group];
    }
  }

 private:
  std::uint64_t find_group(std::uint64_t element) const {
    const std::uint64_t inner = element % stride_;
    const std::uint64_t middle = element / stride_ % along_;
    if (scheme_.group_size == 0) return middle;  // one scale for each index along the axis
    const std::uint64_t group = index_.empty() ? middle / scheme_.group_size : index_[middle];
    return (element / stride_ / along_ * groups_along_ + group) * stride_ + inner;
  }

  float get_zero(std::size_t group) const { return zeros_.empty() ? static_cast<float>(scheme_.zero) : zeros_[group]; }

  void unpack_zeros(const Tensor& tensor) {
    Shape shape = tensor.shape;
    shape[scheme_.axis] = groups_along_;
    const CodeWords codes(scheme_, tensor.require("zeros").blob, shape);
    zeros_.resize(scales_.size());
    for (std::size_t i = 0; i < zeros_.size(); ++i) zeros_[i] = static_cast<float>(codes.at(i));
  }

  GroupScheme scheme_;
  std::vector<float> scales_;
  std::vector<float> zeros_;
  std::vector<std::uint32_t> index_;  // the group of each position along the axis; empty: neighbours share a group
  std::uint64_t stride_ = 1;
  std::uint64_t along_ = 0;
  std::uint64_t groups_along_ = 0;
};

class GroupDecodedBlob final : public FloatBlob {
 public:
  GroupDecodedBlob(const Tensor& tensor, BlobPtr index)
      : FloatBlob(tensor.elements()), tensor_(tensor), index_(std::move(index)) {}

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    const auto decoded = decoded_.get([this] {
      check_group_parts(tensor_);  // a compressed part may have had no size when the file was opened
      return std::make_shared<const Decoded>(tensor_, *get_group_scheme(tensor_.layout), index_);
    });
    std::array<std::uint32_t, kBlockSize> codes;
    decoded->codes.unpack(first, std::span(codes).first(out.size()));
    decoded->numbers.decode(first, std::span<const std::uint32_t>(codes).first(out.size()), out);
  }
  void drop_caches() const override { decoded_.release(); }

 private:
  struct Decoded {
    Decoded(const Tensor& tensor, const GroupScheme& scheme, const BlobPtr& index)
        : numbers(tensor, scheme, index), codes(scheme, tensor.require("packed_weight").blob, tensor.shape) {}
    GroupNumbers numbers;
    CodeWords codes;
  };

  Tensor tensor_;
  BlobPtr index_;
  LazyValue<const Decoded> decoded_;
};

// Returns false when types of the parts are unknown.
bool has_scheme(const Tensor& tensor) { return get_group_scheme(tensor.layout) != nullptr; }

std::optional<TensorLayout> read_groups(const Tensor& tensor, std::string_view name) {
  if (name != layouts::groups.name) return std::nullopt;
  if (!has_known_types(tensor)) return make_group_layout(std::nullopt);
  const Value* packing = tensor.attributes.find("packing");
  const bool words_of_zt2 = packing != nullptr && packing->get_if<Attributes>() != nullptr;
  return make_group_layout(read_group_scheme(tensor, words_of_zt2 ? GroupWords::zt2 : GroupWords::zt1));
}

void check_groups(const Tensor& tensor) {
  if (has_scheme(tensor)) check_group_parts(tensor);
}

std::string describe_group_type(const Tensor& tensor) {
  if (!has_scheme(tensor)) return std::string(layouts::groups.name);
  return fmt::format("group{}:{}", get_group_scheme(tensor.layout)->bits, get_group_scheme(tensor.layout)->group_size);
}

bool is_stored_as_groups(const Tensor& tensor, const StoredType& type) {
  if (!type.grouped() || !has_scheme(tensor)) return false;
  const GroupScheme& scheme = *get_group_scheme(tensor.layout);
  return scheme.bits == type.groups.bits && scheme.group_size == find_group_size(type.groups, tensor.shape.back());
}

bool have_same_grouping(const Tensor& a, const Tensor& b) {
  return !has_scheme(a) || !has_scheme(b) ||
         have_same_meaning(*get_group_scheme(a.layout), *get_group_scheme(b.layout));
}

// Returns the meaning of a part's type. Signed and unsigned words of codes mean the same.
std::optional<std::string> find_group_type_meaning(const Part& part) {
  if (part.role != "packed_weight" || !is_integer(part.dtype)) return std::nullopt;
  return fmt::format("{}", info(part.dtype).bits);
}

}  // namespace

const LayoutType layouts::groups = {
    .name = "quantized_group",
    .quantized = true,
    .read = read_groups,
    .check = check_groups,
    .needs_known_parts = true,
    .has_float_elements = has_scheme,
    .elements = [](const Tensor& tensor) { return make_group_decoded_blob(tensor); },
    .stored_type = describe_group_type,
    .is_stored_as = is_stored_as_groups,
    .same_scheme = have_same_grouping,
    .is_scheme_attribute = is_group_scheme_attribute,
    .type_meaning = find_group_type_meaning,
};

BlobPtr make_group_decoded_blob(const Tensor& tensor, BlobPtr index) {
  return std::make_shared<GroupDecodedBlob>(tensor, std::move(index));
}

std::vector<std::uint32_t> read_group_index(const Tensor& tensor, const GroupScheme& scheme, const Blob& index) {
  const std::uint64_t along = tensor.shape[scheme.axis];
  const std::uint64_t groups = along / scheme.group_size;
  std::vector<std::uint32_t> read(static_cast<std::size_t>(along));
  index.read(0, std::as_writable_bytes(std::span(read)));
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i] < groups) continue;
    const std::string problem =
        fmt::format("tensor {}: group_index: {} at {}, expected less than {}", tensor.name, read[i], i, groups);
    if (const auto at = index.stored_byte(i * sizeof read[i]))
      throw Error(ErrorKind::invalid_file, problem, at->source->name(), at->offset);
    throw Error(ErrorKind::invalid_file, problem);
  }
  return read;
}

}  // namespace poise
