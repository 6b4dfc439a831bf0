// Tensor: a name, a shape, and the parts that hold its bytes.
//
// A dense tensor has one part, "data", in row-major order. Other layouts have more: a sparse matrix has values and
// indices, a quantized one codes and scales. The layout says how parts make up elements; nothing is decoded here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/affine.hpp>
#include <poise/blob.hpp>
#include <poise/digest.hpp>
#include <poise/dtype.hpp>
#include <poise/value.hpp>

namespace poise {

using Shape = std::vector<std::uint64_t>;

// The number of elements; 1 for rank 0; nothing when the product overflows 64 bits.
std::optional<std::uint64_t> element_count(const Shape& shape);

// The bytes of that many elements packed densely, the last byte filled up; nothing on overflow.
std::optional<std::uint64_t> packed_bytes(DType dtype, std::uint64_t elements);

// "[32000, 4096]"
std::string to_string(const Shape& shape);

enum class Layout : std::uint8_t {
  dense,            // data
  sparse_csr,       // values, indices, indptr
  sparse_coo,       // values, coords
  quantized_group,  // packed_weight, scales, zeros
  affine,           // data, with one Affine for the whole tensor (ALT's qint8 and qint4)
  other,            // named by Tensor::layout_name: listed, not interpreted
};

std::string_view to_string(Layout layout);

struct Part {
  std::string role;  // "data", "values", "scales", ...
  DType dtype = DType::unknown;
  std::string dtype_name;  // as the file spells it, for types that are not known
  BlobPtr blob;            // never null
  std::optional<Digest> digest;
};

// The scale of an affine tensor: known from a file, or found by a pass over the data when it is first asked for.
class AffineSource {
 public:
  virtual ~AffineSource() = default;
  virtual Affine get() const = 0;
  // get().packed, which is known without a pass.
  virtual bool packed() const { return get().packed; }
  // Where the file that the tensor was read from holds the scale, if it does.
  virtual std::optional<std::uint64_t> position() const { return std::nullopt; }
};

struct Tensor {
  std::string name;
  Shape shape;
  Layout layout = Layout::dense;
  std::string layout_name;  // as the file spells it: always for Layout::other, else where the spelling says more
  Attributes attributes;
  std::vector<Part> parts;                     // in file order, roles unique
  std::shared_ptr<const AffineSource> affine;  // set exactly for Layout::affine

  const Part* part(std::string_view role) const;  // nullptr when absent
  // The part with that role; throws not_found naming tensor and role.
  const Part& require(std::string_view role) const;

  // Elements of the logical shape. Requires: the reader has checked that the product fits (it always has).
  std::uint64_t elements() const;
  // Decoded bytes of all parts; UINT64_MAX where they claim more.
  std::uint64_t size_bytes() const;
};

// A dense tensor.
Tensor make_dense(std::string name, Shape shape, DType dtype, BlobPtr data);

std::shared_ptr<const AffineSource> make_affine(Affine affine, std::optional<std::uint64_t> position = std::nullopt);

}  // namespace poise
