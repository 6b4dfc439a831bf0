// A Tensor has a name, a shape, and the parts that hold its bytes.
//
// A dense tensor has one part, "data", in row-major order. Other layouts may have more: a sparse matrix has values and
// indices, a quantized one codes and scales. The layout defines how parts make up elements; values() of
// <poise/values.hpp> decodes them. A const Tensor is safe to read from many threads.
//
//   for (const poise::Part& part : tensor.parts) std::cout << part.role << " " << part.blob->size() << " bytes\n";
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/affine.hpp>
#include <poise/blob.hpp>
#include <poise/digest.hpp>
#include <poise/dtype.hpp>
#include <poise/value.hpp>

namespace poise {

// Holds the length of each dimension, the outermost first. A single number has an empty shape.
using Shape = std::vector<std::uint64_t>;

// Returns the number of elements; 1 for rank 0; std::nullopt when the product overflows 64 bits.
std::optional<std::uint64_t> element_count(const Shape& shape);

// Returns the number of bytes of densely packed elements, rounded up to whole bytes; std::nullopt on overflow.
std::optional<std::uint64_t> packed_bytes(DType dtype, std::uint64_t elements);

// Returns a text such as "[32000, 4096]".
std::string to_string(const Shape& shape);

// Names the kind of a layout. The notes list the roles of its parts.
enum class Layout : std::uint8_t {
  dense,            // data
  sparse_csr,       // values, indices, indptr
  sparse_coo,       // values, coords
  quantized_group,  // packed_weight, scales, zeros
  affine,           // data, with one Affine for the whole tensor (ALT's qint8 and qint4)
  other,            // all others, named by TensorLayout::name(): ggml's blocks, MX, "poise.codebook/1", unknown ones
};

// Returns "dense", "sparse_csr", ...
std::string_view to_string(Layout layout);
// Returns the layout of that name; Layout::other for other names, "affine" included.
Layout layout_from_name(std::string_view name);

// Holds one array of a tensor.
struct Part {
  std::string role;  // "data", "values", "scales", ...
  DType dtype = DType::unknown;
  std::string spelling = {};  // the type's name in the file, if it is not to_string(dtype); else empty
  BlobPtr blob;               // not null
  std::optional<Digest> digest = {};

  // Returns the type's name in the file.
  std::string_view type_name() const { return spelling.empty() ? to_string(dtype) : std::string_view(spelling); }
  // Returns Poise's name of the type, or the file's if Poise does not know it.
  std::string_view shown_type() const { return dtype == DType::unknown ? type_name() : to_string(dtype); }
};

// Returns the value of Part::spelling for a type whose name in a file is `spelled`.
std::string choose_spelling(DType dtype, std::string_view spelled);

// Gives the scale of an affine tensor: from a file, or computed by a pass over the data on first use.
class AffineSource {
 public:
  virtual ~AffineSource() = default;
  // Returns the scale. The first call may read the whole tensor, and throws what reading its blobs throws.
  virtual Affine get() const = 0;
  // Returns get().packed. A class whose get() reads the tensor overrides packed(), so that it reads no data.
  virtual bool packed() const { return get().packed; }
  // Returns get().ranged(). A class whose get() reads the tensor overrides ranged(), so that it reads no data. For
  // ScaleRule::range it then returns true, even if all elements are equal and get().ranged() is false.
  virtual bool ranged() const { return get().ranged(); }
  // Returns the offset of the scale in the tensor's file, in bytes; std::nullopt if the file has none.
  virtual std::optional<std::uint64_t> position() const { return std::nullopt; }
};

// Describes how a tensor's parts make up its elements: the kind of the layout, and a scheme. Here, a scheme is a struct
// with values of the tensor's attributes, such as the bits and sizes of groups.
class TensorLayout {
 public:
  struct Sparse {
    Layout form = Layout::sparse_csr;  // or sparse_coo
    bool ascending = false;            // the file promises that the columns of a row ascend
  };

  TensorLayout() = default;
  // Makes a dense layout, or a sparse one with columns in any order. Throws internal for the kinds that need a scheme.
  TensorLayout(Layout plain);
  TensorLayout(Sparse sparse) : kind_(sparse.form), ascending_(sparse.ascending) {}
  // Makes an affine layout. Requires: `affine` is not null.
  TensorLayout(std::shared_ptr<const AffineSource> affine);
  // Internal: returns a layout with a scheme. Users call read_layout(). Copies of the layout share the scheme. If name
  // and shape describe the layout completely, the scheme is a struct without fields.
  static TensorLayout with_scheme(std::string_view name, std::any scheme, Layout kind = Layout::other);
  // Returns a layout that Poise does not interpret: it lists and copies such tensors.
  static TensorLayout other(std::string name);

  Layout kind() const { return kind_; }
  operator Layout() const { return kind(); }
  // Returns "dense", "sparse_csr", ...; for Layout::other a name such as "zt.mx/1".
  std::string_view name() const;

  // Returns the scale of Layout::affine; null for other kinds.
  const AffineSource* affine() const;
  // Internal: returns the scheme that with_scheme() got. Null for schemes of another type, and for layouts without one.
  template <typename Scheme>
  const Scheme* scheme() const {
    return std::any_cast<Scheme>(scheme_.get());
  }
  // Returns true for a layout that Poise does not interpret.
  bool is_carried() const { return kind_ == Layout::other && scheme_ == nullptr; }
  // Returns true for a sparse_csr layout whose file promises that the columns of each row ascend.
  bool is_ascending() const { return ascending_; }

 private:
  Layout kind_ = Layout::dense;
  bool ascending_ = false;
  std::string name_;                        // the name of Layout::other; else empty
  std::shared_ptr<const std::any> scheme_;  // null: the layout needs none, or Poise does not interpret it
};

// Describes a named array of numbers. Its bytes are in the blobs of its parts.
struct Tensor {
  std::string name;
  Shape shape;
  TensorLayout layout;
  Attributes attributes;
  std::vector<Part> parts;  // in file order; roles are unique
  // The name in the file that the tensor was read from; null: the same as `name`. Tensors that the file holds as one,
  // such as the experts of a layer, share it.
  std::shared_ptr<const std::string> file_name = nullptr;

  // Returns the name in the file, which is `name` if the file has no other.
  std::string_view name_in_file() const { return file_name ? std::string_view(*file_name) : std::string_view(name); }

  // Returns the part with that role; null if the tensor has none.
  const Part* part(std::string_view role) const;
  // Returns the part with that role; throws not_found naming tensor and role.
  const Part& require(std::string_view role) const;

  // Returns the number of elements of the logical shape. Requires: the product fits, which every reader checks.
  std::uint64_t elements() const;
  // Returns the number of decoded bytes of all parts; UINT64_MAX on overflow.
  std::uint64_t size_bytes() const;
};

// Returns the layout of that name, read from the tensor's attributes and parts: "dense", "sparse_csr", "sparse_coo",
// "quantized_group" (with attributes of zTensor 1.1 or of zt.quant_group/1), "zt.mx/1", "gguf.<type>/1",
// "poise.<type>.columns/1", "poise.codebook/1" and others of docs/formats/ztensor.md; for an unknown name one that
// Poise does not interpret. Throws invalid_file (without path), naming tensor and attribute, when attributes are
// missing or wrong.
TensorLayout read_layout(const Tensor& tensor, std::string_view name);

// Returns a dense tensor with the one part `data`. Requires: `data` has the bytes of `shape`, in row-major order.
Tensor make_dense(std::string name, Shape shape, DType dtype, BlobPtr data);

// Returns the source of a known scale. `position` is its offset in the tensor's file, in bytes.
std::shared_ptr<const AffineSource> make_affine(Affine affine, std::optional<std::uint64_t> position = std::nullopt);

}  // namespace poise
