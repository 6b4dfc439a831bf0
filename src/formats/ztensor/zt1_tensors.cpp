// From objects to tensors: where components may lie, how large they must be, and what becomes of what is not known.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/zt1.hpp"
#include "io/extents.hpp"
#include "pack/part_digest.hpp"
#include "pack/zstd.hpp"
#include "views/byte_swap.hpp"
#include "views/check_parts.hpp"

namespace poise::ztensor {
namespace {

constexpr std::uint64_t kWidestElement = 16;  // complex128

constexpr std::array kLayouts = {Layout::dense, Layout::sparse_csr, Layout::sparse_coo, Layout::quantized_group};

Layout layout_from(std::string_view name) {
  const auto* found = std::ranges::find_if(kLayouts, [&](Layout layout) { return to_string(layout) == name; });
  return found == kLayouts.end() ? Layout::other : *found;
}

bool has_unknown_type(const Tensor& tensor) {
  return std::ranges::any_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

// Sorts components as they were written: one without bytes begins where the next one does.
std::pair<std::uint64_t, std::uint64_t> order_of(const Component& component) { return {component.offset, component.length}; }

class TensorBuilder {
 public:
  TensorBuilder(const SourcePtr& source, std::uint64_t data_end, const std::string& context) : source_(source), data_end_(data_end), context_(context) {}

  void add(Model& model, Object object) {
    if (!std::ranges::is_sorted(object.components, {}, order_of)) std::ranges::stable_sort(object.components, {}, order_of);
    Tensor tensor;
    tensor.name = std::move(object.name);
    tensor.shape = std::move(object.shape);
    tensor.layout_name = std::move(object.layout);
    tensor.layout = layout_from(tensor.layout_name);
    tensor.attributes = std::move(object.attributes);
    const auto elements = element_count(tensor.shape);
    if (!elements) fail(tensor, object.position, fmt::format("shape: {} overflows", to_string(tensor.shape)));
    elements_ = *elements;
    sizes_known_ = true;
    tensor.parts.reserve(object.components.size());
    for (Component& component : object.components) {
      require_place(tensor, component);
      tensor.parts.push_back(part(tensor, component));
    }
    resolve(tensor, object.position);
    if (object.big_endian) swap_bytes(tensor);
    model.add(std::move(tensor));
  }

 private:
  [[noreturn]] void fail(const Tensor& tensor, std::uint64_t offset, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}: {}", context_, tensor.name, problem), source_->name(), offset);
  }
  [[noreturn]] void fail(const Tensor& tensor, const Component& component, std::string_view problem) const {
    fail(tensor, component.position, fmt::format("{}: {}", component.role, problem));
  }

  void require_place(const Tensor& tensor, const Component& component) const {
    if (component.offset % kAlignment1 != 0) fail(tensor, component, fmt::format("offset: {} is no multiple of {}", component.offset, kAlignment1));
    if (component.offset < kAlignment1) fail(tensor, component, fmt::format("offset: {} lies in front of the first place, {}", component.offset, kAlignment1));
    if (component.offset > data_end_ || component.length > data_end_ - component.offset) {
      fail(tensor, component, fmt::format("{} bytes at {} reach behind the data, which end at {}", component.length, component.offset, data_end_));
    }
  }

  Part part(const Tensor& tensor, Component& component) {
    Part part;
    part.blob = blob(tensor, component);
    part.role = std::move(component.role);
    part.dtype = component.dtype;
    part.dtype_name = std::move(component.dtype_name);
    if (!component.digest.empty()) part.digest = Digest{digest_algorithm(component.digest), std::move(component.digest), true};
    return part;
  }

  BlobPtr blob(const Tensor& tensor, const Component& component) {
    if (component.encoding == "raw") {
      if (component.decoded_length.value_or(component.length) != component.length) {
        fail(tensor, component, fmt::format("uncompressed_length: {} for {} bytes that are not compressed", *component.decoded_length, component.length));
      }
      return make_source_blob(source_, component.offset, component.length);
    }
    Location location{source_, component.offset, component.length, component.encoding};
    if (component.encoding != "zstd") {
      std::string reason = fmt::format("the encoding \"{}\" of tensor {} is not known to this version of Poise", component.encoding, short_name(tensor.name));
      return make_opaque_blob(std::move(location), component.decoded_length.value_or(component.length), std::move(reason));
    }
    if (const auto size = component.decoded_length ? component.decoded_length : exact_size(tensor, component))
      return make_zstd_blob(std::move(location), *size);
    sizes_known_ = false;
    std::shared_ptr<ZstdSize>& size = unknown_sizes_[{component.offset, component.length}];
    if (!size) size = count_zstd(location);
    return make_zstd_blob_of_unknown_size(std::move(location), largest_size(tensor, component), size);
  }

  static void swap_bytes(Tensor& tensor) {
    for (Part& part : tensor.parts) {
      if (part.dtype != DType::unknown) part.blob = make_byte_swapped_blob(part.blob, part.dtype);
    }
  }

  // The decoded bytes of a component, where the shape alone says them.
  std::optional<std::uint64_t> exact_size(const Tensor& tensor, const Component& component) const {
    if (component.dtype == DType::unknown) return std::nullopt;
    if (tensor.layout == Layout::dense && component.role == "data") return packed_bytes(component.dtype, elements_);
    if (tensor.layout == Layout::sparse_csr && component.role == "indptr" && tensor.shape.size() == 2) {
      const auto rows = checked_add(tensor.shape[0], 1);
      return rows ? packed_bytes(component.dtype, *rows) : std::nullopt;
    }
    if (tensor.layout == Layout::other && tensor.layout_name == kAffineLayout) return packed_bytes(DType::qint4, elements_);
    return std::nullopt;
  }

  // What the layouts name has no more elements than the shape, but for coordinates.
  std::uint64_t largest_size(const Tensor& tensor, const Component& component) const {
    const bool beside_data = tensor.layout == Layout::dense && component.role != "data";
    if (tensor.layout == Layout::other || component.dtype == DType::unknown || beside_data) return UINT64_MAX;
    const std::uint64_t each = component.role == "coords" ? tensor.shape.size() : 1;
    const auto count = checked_mul(elements_, each);
    return count ? checked_mul(*count, kWidestElement).value_or(UINT64_MAX) : UINT64_MAX;
  }

  // A size that is not known yet is not found now: that takes a pass over the data.
  void resolve(Tensor& tensor, std::uint64_t position) const {
    const bool is_data_known = tensor.layout == Layout::dense;
    try {
      from_stored1(tensor, sizes_known_ || is_data_known ? Sizes1::known : Sizes1::hidden);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", context_, error.message()), source_->name(), position);
    }
  }

  const SourcePtr& source_;
  std::uint64_t data_end_;
  const std::string& context_;
  std::uint64_t elements_ = 0;                                                                  // of the tensor being built
  bool sizes_known_ = true;                                                                     // of all its parts
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<ZstdSize>> unknown_sizes_;  // by place
};

// Where an object begins: objects without bytes stand in front of the one whose place they share.
struct Beginning {
  std::uint64_t offset = UINT64_MAX;
  bool has_bytes = false;
  std::size_t index = 0;

  friend bool operator<(const Beginning& a, const Beginning& b) {
    if (a.offset != b.offset) return a.offset < b.offset;
    return a.has_bytes != b.has_bytes ? b.has_bytes : a.index < b.index;
  }
};

// Objects in the order of their bytes.
std::vector<Beginning> beginnings(const std::vector<Object>& objects) {
  std::vector<Beginning> result;
  result.reserve(objects.size());
  for (const Object& object : objects) {
    Beginning& beginning = result.emplace_back();
    beginning.index = result.size() - 1;
    for (const Component& component : object.components) {
      beginning.offset = std::min(beginning.offset, component.offset);
      beginning.has_bytes = beginning.has_bytes || component.length > 0;
    }
  }
  if (!std::is_sorted(result.begin(), result.end())) std::sort(result.begin(), result.end());
  return result;
}

void require_disjoint(const std::vector<Object>& objects, const std::vector<Beginning>& order, const Source& source, const std::string& context) {
  std::vector<Extent> extents;
  extents.reserve(order.size());
  for (const Beginning& beginning : order) {
    const auto& components = objects[beginning.index].components;
    for (std::size_t i = 0; i < components.size(); ++i) {
      const Component& component = components[i];
      if (component.length == 0) continue;
      extents.push_back({component.offset, component.length, component.position, static_cast<std::uint32_t>(beginning.index), static_cast<std::uint32_t>(i)});
    }
  }
  const auto overlap = find_overlap(std::move(extents));
  if (!overlap) return;
  const auto& [before, here] = *overlap;
  const auto name_of = [&](const Extent& extent) {
    const Object& object = objects[extent.tensor];
    return fmt::format("{}: {}", object.name, object.components[extent.part].role);
  };
  throw Error(ErrorKind::invalid_file,
              fmt::format("{}: {}: {} bytes at {} overlap those of {} at {}", context, name_of(here), here.length, here.begin, name_of(before), before.begin),
              source.name(), here.position);
}

// Dense tensors that have parts beside data: the specification names what is required, and forbids nothing.
void warn_of_more_parts(Model& model, const Source& source, const std::string& context) {
  const Tensor* first = nullptr;
  std::size_t count = 0;
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout != Layout::dense || tensor.parts.size() < 2) continue;
    if (count++ == 0) first = &tensor;
  }
  if (first == nullptr) return;
  const auto more = std::ranges::find_if(first->parts, [](const Part& part) { return part.role != "data"; });
  const auto at = more->blob->location();
  model.warnings.push_back({Severity::warning,
                            fmt::format("{}: {}{}: dense, but with the part {} beside data, which is kept and not looked into", context,
                                        short_name(first->name), count == 1 ? "" : fmt::format(" and {} more", count - 1), short_name(more->role)),
                            source.name(), at ? std::optional(at->offset) : std::nullopt});
}

}  // namespace

void from_stored1(Tensor& tensor, Sizes1 sizes) {
  tensor.layout = layout_from(tensor.layout_name);
  if (tensor.layout != Layout::other) tensor.layout_name.clear();
  if (tensor.layout == Layout::dense && tensor.part("data") == nullptr) {
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: dense needs the component data", tensor.name));
  }
  if (sizes == Sizes1::hidden) return;
  check_parts(tensor);
  if (!has_unknown_type(tensor)) from_stored_affine(tensor);
}

void add_tensors(Model& model, std::vector<Object> objects, const SourcePtr& source, std::uint64_t data_end, const std::string& context) {
  const std::vector<Beginning> order = beginnings(objects);
  require_disjoint(objects, order, *source, context);
  TensorBuilder builder(source, data_end, context);
  model.reserve(objects.size());
  for (const Beginning& beginning : order) builder.add(model, std::exchange(objects[beginning.index], {}));
  warn_of_more_parts(model, *source, context);
}

}  // namespace poise::ztensor
