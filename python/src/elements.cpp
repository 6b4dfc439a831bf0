#include "elements.hpp"

#include <fmt/format.h>

#include "long_call.hpp"
#include "views/dense.hpp"

namespace poise::python {
namespace {

constexpr std::uint64_t kLongRead = 16 << 20;      // elements; fewer take some hundredths of a second
constexpr std::uint64_t kWorthMapping = 64 << 10;  // bytes; copying fewer is faster

bool is_known(DType dtype) { return dtype != DType::unknown && info(dtype).kind != DTypeKind::quantized; }

// Returns true if each element has its own bytes.
bool has_bytes(DType dtype) { return info(dtype).bits >= 8; }

std::vector<std::uint64_t> scale_strides(std::vector<std::uint64_t> strides, std::uint64_t width) {
  for (std::uint64_t& stride : strides) stride *= width;
  return strides;
}

// Selects an array of the same shape whose elements are contiguous.
Strided make_row_major(const Strided& place) {
  Shape shape(place.shape.begin(), place.shape.end());
  return Strided::make_whole(shape);
}

// Reads elements of half a byte, the even one in the low half, as one byte each.
Memory read_halves(const Blob& blob, const Strided& place) {
  const std::uint64_t extent = place.extent();
  Memory out = make_memory(place.count());
  if (extent == 0) return out;
  const std::uint64_t begin = place.first / 2;
  std::vector<std::byte> bytes(static_cast<std::size_t>((place.first + extent + 1) / 2 - begin));
  blob.read(begin, bytes);
  std::vector<std::byte> whole(static_cast<std::size_t>(extent));
  for (std::uint64_t i = 0; i < extent; ++i) {
    const std::uint64_t half = place.first + i - 2 * begin;
    whole[static_cast<std::size_t>(i)] =
        (half % 2 == 0 ? bytes[static_cast<std::size_t>(half / 2)] : bytes[static_cast<std::size_t>(half / 2)] >> 4) &
        std::byte{15};
  }
  Strided inside = place;
  inside.first = 0;
  read_strided(*make_memory_blob(std::move(whole), "halves"), 1, inside, out.data);
  return out;
}

}  // namespace

std::optional<DType> HeldElements::dtype() const {
  const bool has_numbers = has_float_elements(*tensor) || tensor->layout == Layout::dense ||
                           tensor->layout == Layout::sparse_csr || tensor->layout == Layout::sparse_coo;
  if (!has_numbers) return std::nullopt;
  const DType type = find_element_type(*tensor);
  return is_known(type) ? std::optional(type) : std::nullopt;
}

DType HeldElements::require_dtype() const {
  if (const auto type = dtype()) return *type;
  throw Error(
      ErrorKind::unsupported,
      fmt::format(
          "tensor {}: it is stored as {}, which Poise cannot decode to numbers; read the bytes of its parts instead",
          tensor->name, describe_storage(*tensor)),
      model->origin.path.string());
}

std::optional<Placed> HeldElements::find_mapped() const {
  const auto type = dtype();
  if (!type || tensor->layout != Layout::dense || !has_bytes(*type)) return std::nullopt;
  const Part& data = tensor->require("data");
  const auto bytes = data.blob->map();
  if (!bytes) return std::nullopt;
  const std::uint64_t width = info(*type).bits / 8;
  auto* first = const_cast<std::byte*>(bytes->data());  // Memory is marked read-only
  const auto raw = data.blob->raw_range();
  std::optional<Placed> result(std::in_place);
  result->memory = {first, bytes->size(), false,
                    raw ? std::shared_ptr<const void>(raw->source) : std::shared_ptr<const void>(BlobPtr(data.blob))};
  result->offset = place.first * width;
  result->strides = scale_strides(place.strides, width);
  return result;
}

std::optional<Placed> HeldElements::make_writable() const {
  std::optional<Placed> result = find_mapped();
  if (!result) return result;
  const std::uint64_t width = info(require_dtype()).bits / 8;
  const std::uint64_t extent = place.extent() * width;
  const auto raw = tensor->require("data").blob->raw_range();
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(result->memory.data + result->offset) % std::min<std::uint64_t>(width, 8) == 0;
  if (raw && raw->source->descriptor() >= 0 && extent >= kWorthMapping && aligned) {
    result->memory = map_privately(*raw->source, raw->offset + result->offset, extent);
  } else {
    result->memory = read(std::nullopt);
    result->strides = scale_strides(make_row_major(place).strides, width);
  }
  result->offset = 0;
  return result;
}

Memory HeldElements::read(std::optional<DType> as, const std::function<bool()>& stopped) const {
  const DType own = require_dtype();
  const std::uint64_t count = place.count();
  BlobPtr blob;
  if (as && *as != own) {
    if (!has_float_elements(*tensor) || (*as != DType::f32 && *as != DType::f16 && *as != DType::bf16)) {
      throw Error(ErrorKind::unsupported, fmt::format("tensor {}: its elements are {}, which cannot be converted to {}",
                                                      tensor->name, to_string(own), to_string(*as)));
    }
    blob = make_dense_blob(*tensor, *as);
  } else if (!has_bytes(own)) {
    return read_halves(*make_dense_tensor(*tensor).require("data").blob, place);
  } else {
    blob = make_dense_tensor(*tensor).require("data").blob;
  }
  const std::uint64_t width = info(as.value_or(own)).bits / 8;
  if (count > UINT64_MAX / width) throw std::bad_alloc();
  Memory memory = make_memory(count * width);
  read_strided(*blob, width, place, memory.data, stopped);
  return memory;
}

Memory read_interruptibly(const HeldElements& elements, std::optional<DType> as) {
  if (elements.place.count() < kLongRead) {
    const Released released;
    return elements.read(as);
  }
  LongCall call;
  return call.run([&] { return elements.read(as, [&] { return call.is_stopped(); }); });
}

}  // namespace poise::python
