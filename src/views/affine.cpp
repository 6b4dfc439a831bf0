#include "views/affine.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "codec/affine.hpp"
#include "io/extents.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// These functions throw invalid_file for a scale, or for codes, that verify() reports as faults.
void require_valid_scale(std::string_view tensor, const Affine& affine) {
  const auto problems = list_problems(affine);
  if (!problems.empty())
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor, fmt::join(problems, "; ")));
}
void require_valid_codes(std::string_view tensor, const CodeFormat& format, std::uint64_t first,
                         std::span<const std::byte> codes) {
  if (const auto bad = find_bad_code(format, codes))
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor, to_string(*bad, first)));
}

// Decodes the elements to float32. Reading throws invalid_file for an invalid scale or code.
BlobPtr decode_affine(const Tensor& tensor) {
  const Part& data = tensor.require("data");
  // The layout keeps the scale, which may be known only after a first pass.
  const auto compute = [name = tensor.name, dtype = data.dtype, layout = tensor.layout](
                           const Blob& blob, std::span<const LoadedBlob> /*kept*/, std::uint64_t first,
                           std::span<float> out) {
    const Affine affine = layout.affine()->get();
    require_valid_scale(name, affine);
    const CodeFormat format = get_code_format(dtype, affine);
    const std::uint64_t begin = format.packed ? first / 2 : first;
    std::array<std::byte, kBlockSize + 1> bytes;
    const auto packed =
        std::span(bytes).first(static_cast<std::size_t>(format.count_bytes(first + out.size()) - begin));
    blob.read(begin, packed);
    require_valid_codes(name, format, first, packed);
    std::array<std::int16_t, kBlockSize> codes;
    unpack_codes(format, first, packed, std::span(codes).first(out.size()));
    decode_codes(affine, std::span<const std::int16_t>(codes).first(out.size()), out);
  };
  return make_float_blob(tensor.elements(), data.blob, {}, compute);
}

class PackedBlob final : public Blob {
 public:
  PackedBlob(std::string name, BlobPtr data, const CodeFormat& format)
      : name_(std::move(name)), data_(std::move(data)), format_(format) {}

  std::uint64_t size() const override { return data_->size() / 2 + data_->size() % 2; }
  bool seekable() const override { return data_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t first = 2 * offset;
    const std::uint64_t count = std::min<std::uint64_t>(2 * out.size(), data_->size() - first);
    std::vector<std::byte> codes(static_cast<std::size_t>(count));
    data_->read(first, codes);
    require_valid_codes(name_, format_, first, codes);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::byte low = codes[2 * i] & std::byte{0x0f};
      const std::byte high = 2 * i + 1 < codes.size() ? codes[2 * i + 1] << 4 : std::byte{0};
      out[i] = low | high;
    }
  }

 private:
  std::string name_;
  BlobPtr data_;
  CodeFormat format_;
};

void check_affine(const Tensor& tensor) {
  const Part& data = require_data(tensor);
  if (data.dtype != DType::qint8 && data.dtype != DType::qint4)
    fail_parts(tensor, fmt::format("data: expected qint8 or qint4, found {}", data.type_name()));
  const bool packed = data.dtype == DType::qint4 && tensor.layout.affine()->packed();
  const auto bytes = packed ? packed_bytes(DType::qint4, tensor.elements()) : tensor.elements();
  if (bytes != data.blob->size())
    fail_parts(tensor, fmt::format("the codes of shape {} need {} bytes, data holds {}", to_string(tensor.shape),
                                   *bytes, data.blob->size()));
}

// Reports a delta that is negative or not finite, and a range that is not finite.
std::vector<Finding> find_affine_faults(const Tensor& tensor) {
  std::vector<Finding> findings;
  const Place place = find_place(*tensor.require("data").blob);
  const auto position = tensor.layout.affine()->position();
  for (const std::string& problem : list_problems(tensor.layout.affine()->get())) {
    findings.push_back({Severity::error, fmt::format("tensor {}: {}", tensor.name, problem), place.path,
                        position ? position : place.offset});
  }
  return findings;
}

ValueRules make_affine_rules(const Tensor& tensor, const Part& part) {
  ValueRules rules{part.dtype};
  if (part.role != "data") return rules;
  // This does not call get(), which may have to compute the scale.
  const AffineSource& affine = *tensor.layout.affine();
  if (part.dtype != DType::qint4) return rules;
  if (affine.packed()) {
    if (tensor.elements() % 2 != 0) rules.last_half = ValueRules::LastHalf::without_code;
  } else {
    rules.codes = affine.ranged() ? ValueRules::ByteCodes::unsigned4 : ValueRules::ByteCodes::signed4;
  }
  return rules;
}

std::string describe_affine_type(const Tensor& tensor) {
  return to_string(StoredType{tensor.require("data").dtype,
                              tensor.layout.affine()->ranged() ? ScaleRule::range : ScaleRule::largest});
}

// Returns true if a conversion to `type` would keep all codes. A scale with clipping counts as the same type as one
// without, because attributes do not show how the scale was chosen.
bool is_stored_as_affine(const Tensor& tensor, const StoredType& type) {
  return !type.grouped() && type.blocks.empty() && tensor.require("data").dtype == type.dtype &&
         tensor.layout.affine()->ranged() == (type.scale == ScaleRule::range);
}

}  // namespace

const LayoutType layouts::affine = {
    .name = "affine",
    .quantized = true,
    .check = check_affine,
    .scheme_faults = find_affine_faults,
    .value_rules = make_affine_rules,
    .has_float_elements = [](const Tensor&) { return true; },
    .elements = decode_affine,
    .stored_type = describe_affine_type,
    .is_stored_as = is_stored_as_affine,
    .same_scheme = [](const Tensor& a,
                      const Tensor& b) { return a.layout.affine()->get() == b.layout.affine()->get(); },
};

Tensor make_packed_qint4_view(const Tensor& tensor) {
  if (tensor.layout != Layout::affine || tensor.require("data").dtype != DType::qint4 ||
      tensor.layout.affine()->packed())
    return tensor;
  Affine affine = tensor.layout.affine()->get();
  Tensor packed = tensor;
  Part& data = packed.parts.front();
  data.blob = std::make_shared<PackedBlob>(tensor.name, data.blob, get_code_format(DType::qint4, affine));
  data.digest.reset();
  affine.packed = true;
  packed.layout = make_affine(affine);
  return packed;
}

}  // namespace poise
