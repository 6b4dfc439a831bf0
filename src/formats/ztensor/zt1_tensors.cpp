// Makes tensors from objects: checks places and sizes of components, and keeps those with unknown types or encodings.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "formats/faulty_model.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/zt1.hpp"
#include "io/extents.hpp"
#include "pack/part_digest.hpp"
#include "pack/zstd.hpp"
#include "tensor/part_types.hpp"
#include "views/integer_blobs.hpp"
#include "views/layout_type.hpp"

namespace poise::ztensor {
namespace {

constexpr std::uint64_t kWidestElement = 16;  // complex128

// Returns the key that sorts components in the order of writing. The length comes second, because an empty component
// has the offset of the component after it.
std::pair<std::uint64_t, std::uint64_t> get_sort_key(const Component& component) {
  return {component.offset, component.length};
}

}  // namespace

class ModelBuilder1::Impl {
 public:
  Impl(Model& model, SourcePtr source, std::uint64_t data_end, std::string context)
      : model_(model), source_(std::move(source)), data_end_(data_end), context_(std::move(context)) {}

  void reserve(std::size_t objects) {
    model_.reserve(objects);
    extents_.reserve(objects);
    beginnings_.reserve(objects);
  }

  void add_object(StoredObject& object) {
    const std::size_t extents = extents_.size();
    if (faults_.attempt([&] { add_tensor(object); }, object.name)) return;
    extents_.resize(extents);
    beginnings_.resize(model_.size());
  }

  void finish() {
    faults_.attempt([&] { require_disjoint(); });
    sort_tensors();
    warn_of_more_parts();
    faults_.throw_if_any();
  }

 private:
  void add_tensor(StoredObject& object) {
    if (!std::ranges::is_sorted(object.components, {}, get_sort_key))
      std::ranges::stable_sort(object.components, {}, get_sort_key);
    Tensor tensor;
    tensor.name = object.name;
    tensor.shape = std::move(object.shape);
    layout_ = object.layout;
    kind_ = layout_from_name(layout_);
    tensor.attributes = std::move(object.attributes);
    const auto elements = element_count(tensor.shape);
    if (!elements) fail(tensor, object.position, fmt::format("shape: {} overflows 64 bits", to_string(tensor.shape)));
    elements_ = *elements;
    sizes_known_ = true;
    tensor.parts.reserve(object.components.size());
    const auto index = static_cast<std::uint32_t>(model_.size());
    std::uint64_t begin = UINT64_MAX / 2;
    bool has_bytes = false;
    for (Component& component : object.components) {
      require_place(tensor, component);
      begin = std::min(begin, component.offset);
      has_bytes = has_bytes || component.length > 0;
      if (component.length > 0) {
        extents_.push_back(
            {component.offset, component.length, index, static_cast<std::uint32_t>(component.position - data_end_)});
      }
      tensor.parts.push_back(make_part(tensor, component));
    }
    beginnings_.push_back(2 * begin + (has_bytes ? 1 : 0));
    set_layout(tensor, object.position);
    if (object.big_endian) set_byte_order(tensor);
    try {
      model_.add(std::move(tensor));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", context_, error.message()), source_->name(), object.position);
    }
  }

  void sort_tensors() {
    if (std::ranges::is_sorted(beginnings_)) return;
    // Sorting pairs is faster than sorting indices by the places that they refer to.
    std::vector<std::pair<std::uint64_t, std::uint32_t>> places;
    places.reserve(beginnings_.size());
    for (const std::uint64_t begin : beginnings_) places.emplace_back(begin, static_cast<std::uint32_t>(places.size()));
    std::ranges::sort(places);
    std::vector<std::uint32_t> order;
    order.reserve(places.size());
    for (const auto& [begin, tensor] : places) order.push_back(tensor);
    model_.reorder(order);
  }

  [[noreturn]] void fail(const Tensor& tensor, std::uint64_t offset, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}: {}", context_, tensor.name, problem), source_->name(),
                offset);
  }
  [[noreturn]] void fail(const Tensor& tensor, const Component& component, std::string_view problem) const {
    fail(tensor, component.position, fmt::format("{}: {}", component.role, problem));
  }

  void require_place(const Tensor& tensor, const Component& component) const {
    if (component.offset % kAlignment1 != 0)
      fail(tensor, component, fmt::format("offset: {} is not a multiple of {}", component.offset, kAlignment1));
    if (component.offset < kAlignment1)
      fail(tensor, component, fmt::format("offset: {} is before the first place, {}", component.offset, kAlignment1));
    if (component.offset > data_end_ || component.length > data_end_ - component.offset) {
      fail(tensor, component,
           fmt::format("{} bytes at {} reach beyond the data, which end at {}", component.length, component.offset,
                       data_end_));
    }
  }

  Part make_part(const Tensor& tensor, Component& component) {
    Part part;
    part.blob = make_blob(tensor, component);
    part.role = component.role;
    part.dtype = component.dtype;
    part.spelling = std::move(component.spelling);
    if (!component.digest.empty())
      part.digest = Digest{parse_digest_algorithm(component.digest), std::string(component.digest), true};
    return part;
  }

  BlobPtr make_blob(const Tensor& tensor, const Component& component) {
    if (component.encoding == "raw") {
      if (component.decoded_length.value_or(component.length) != component.length) {
        fail(tensor, component,
             fmt::format("uncompressed_length: expected {}, the length of the raw bytes, found {}", component.length,
                         *component.decoded_length));
      }
      return make_source_blob(source_, component.offset, component.length);
    }
    StoredRange range{source_, component.offset, component.length};
    if (component.encoding != "zstd") {
      std::string reason = fmt::format("the encoding \"{}\" of tensor {} is not known to this version of Poise",
                                       component.encoding, shorten_name(tensor.name));
      return make_opaque_blob({std::move(range), std::string(component.encoding)},
                              component.decoded_length.value_or(component.length), std::move(reason));
    }
    try {
      return make_compressed_blob(tensor, component, std::move(range));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}: {}: {}", context_, tensor.name, component.role, error.message()),
                  error.path(), error.offset());
    }
  }

  BlobPtr make_compressed_blob(const Tensor& tensor, const Component& component, StoredRange range) {
    if (const auto size = component.decoded_length ? component.decoded_length : find_exact_size(tensor, component))
      return make_zstd_blob(std::move(range), *size);
    sizes_known_ = false;
    std::shared_ptr<ZstdSize>& size = unknown_sizes_[{component.offset, component.length}];
    if (!size) size = make_zstd_size(range);
    return make_zstd_blob_of_unknown_size(std::move(range), find_largest_size(tensor, component), size);
  }

  // Swaps the bytes of big-endian numbers. If layout, type or encoding is not known, keeps the bytes, and the byte
  // order as an attribute.
  void set_byte_order(Tensor& tensor) const {
    const bool is_known = kind_ == Layout::dense && std::ranges::all_of(tensor.parts, [](const Part& part) {
                            return part.dtype != DType::unknown && part.blob->decodable();
                          });
    if (!is_known) return tensor.attributes.set(std::string(kByteOrder), "big");
    for (Part& part : tensor.parts) part.blob = make_byte_swapped_blob(part.blob, get_number_bytes(part.dtype));
  }

  // Returns the decoded size of a component; std::nullopt unless shape and element type imply it.
  std::optional<std::uint64_t> find_exact_size(const Tensor& tensor, const Component& component) const {
    if (component.dtype == DType::unknown) return std::nullopt;
    if (kind_ == Layout::dense && component.role == "data") return packed_bytes(component.dtype, elements_);
    if (kind_ == Layout::sparse_csr && component.role == "indptr" && tensor.shape.size() == 2) {
      const auto rows = checked_add(tensor.shape[0], 1);
      return rows ? packed_bytes(component.dtype, *rows) : std::nullopt;
    }
    if (layout_ == kAffineLayout) return packed_bytes(DType::qint4, elements_);
    return std::nullopt;
  }

  // Returns an upper bound of a component's decoded size; UINT64_MAX if there is none. In a known layout, a part has at
  // most as many elements as the tensor; `coords` has at most that number for each dimension.
  std::uint64_t find_largest_size(const Tensor& tensor, const Component& component) const {
    const bool beside_data = kind_ == Layout::dense && component.role != "data";
    if (kind_ == Layout::other || component.dtype == DType::unknown || beside_data) return UINT64_MAX;
    const std::uint64_t each = component.role == "coords" ? tensor.shape.size() : 1;
    const auto count = checked_mul(elements_, each);
    return count ? checked_mul(*count, kWidestElement).value_or(UINT64_MAX) : UINT64_MAX;
  }

  // Sets the layout, and checks the parts. Does not compute unknown sizes, because that takes a pass over the data.
  void set_layout(Tensor& tensor, std::uint64_t position) const {
    const bool is_data_known = kind_ == Layout::dense;
    try {
      convert_from_stored1(tensor, layout_, sizes_known_ || is_data_known ? Sizes1::known : Sizes1::hidden);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", context_, error.message()), source_->name(), position);
    }
  }

  void require_disjoint() {
    const auto overlap = find_overlap(std::exchange(extents_, {}));
    if (!overlap) return;
    const auto& [before, here] = *overlap;
    const auto describe_extent = [&](const Extent& extent) {
      const Tensor& tensor = model_.tensors()[extent.tensor];
      return fmt::format("{}: {}", tensor.name, find_part(tensor, extent).role);
    };
    throw Error(ErrorKind::invalid_file,
                fmt::format("{}: {}: {} bytes at {} overlap those of {} at {}", context_, describe_extent(here),
                            here.length, here.begin, describe_extent(before), before.begin),
                source_->name(), data_end_ + here.position);
  }

  // Warns of dense tensors with parts besides data: the specification requires data, and is silent about other parts.
  void warn_of_more_parts() {
    const Tensor* first = nullptr;
    std::size_t count = 0;
    for (const Tensor& tensor : model_.tensors()) {
      if (tensor.layout != Layout::dense || tensor.parts.size() < 2) continue;
      if (count++ == 0) first = &tensor;
    }
    if (first == nullptr) return;
    const auto more = std::ranges::find_if(first->parts, [](const Part& part) { return part.role != "data"; });
    model_.warnings.push_back(
        {Severity::warning,
         fmt::format("{}: {}{}: dense, but with the part {} besides data, which is kept and not checked", context_,
                     shorten_name(first->name), format_more(count - 1), shorten_name(more->role)),
         source_->name(), find_place(*more->blob).offset});
  }

  Model& model_;
  SourcePtr source_;
  std::uint64_t data_end_;
  std::string context_;
  std::vector<Extent> extents_;
  // Tensors are sorted by these numbers: twice the offset of a tensor's bytes, plus 1 if it has any. So an empty tensor
  // comes before another one at its offset.
  std::vector<std::uint64_t> beginnings_;
  TensorFaults faults_{model_};
  // The following four members belong to the current tensor.
  std::string_view layout_;
  Layout kind_ = Layout::dense;
  std::uint64_t elements_ = 0;
  bool sizes_known_ = true;  // the sizes of all its parts are known
  // Maps offset and length to a size: components at the same place are decoded only once to find their size.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<ZstdSize>> unknown_sizes_;
};

void convert_from_stored1(Tensor& tensor, std::string_view layout, Sizes1 sizes) {
  tensor.layout = read_layout(tensor, layout);
  if (tensor.layout == Layout::dense && tensor.part("data") == nullptr) {
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: dense needs the component data", tensor.name));
  }
  if (sizes == Sizes1::hidden) return;
  check_parts(tensor);
  if (has_known_types(tensor)) convert_from_stored_affine(tensor);
}

ModelBuilder1::ModelBuilder1(Model& model, SourcePtr source, std::uint64_t data_end, std::string context)
    : impl_(std::make_unique<Impl>(model, std::move(source), data_end, std::move(context))) {}
ModelBuilder1::~ModelBuilder1() = default;
void ModelBuilder1::reserve(std::size_t objects) { impl_->reserve(objects); }
void ModelBuilder1::add_object(StoredObject& object) { impl_->add_object(object); }
void ModelBuilder1::finish() { impl_->finish(); }

}  // namespace poise::ztensor
