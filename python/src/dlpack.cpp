// DLPack (https://dmlc.github.io/dlpack): exchanges arrays with other libraries. The structs are those of its version
// 0.8, which every library accepts.
#include <array>
#include <cstring>

#include "elements.hpp"

namespace poise::python {
namespace {

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major order
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

constexpr std::int32_t kCpu = 1;
constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

enum Code : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

struct Row {
  DType dtype;
  DLDataType dlpack;
};
constexpr std::array kTypes = {
    Row{DType::f64, {kFloat, 64, 1}},         Row{DType::f32, {kFloat, 32, 1}},
    Row{DType::f16, {kFloat, 16, 1}},         Row{DType::bf16, {kBfloat, 16, 1}},
    Row{DType::complex64, {kComplex, 64, 1}}, Row{DType::complex128, {kComplex, 128, 1}},
    Row{DType::i64, {kInt, 64, 1}},           Row{DType::i32, {kInt, 32, 1}},
    Row{DType::i16, {kInt, 16, 1}},           Row{DType::i8, {kInt, 8, 1}},
    Row{DType::u64, {kUInt, 64, 1}},          Row{DType::u32, {kUInt, 32, 1}},
    Row{DType::u16, {kUInt, 16, 1}},          Row{DType::u8, {kUInt, 8, 1}},
    Row{DType::boolean, {kBool, 8, 1}},       Row{DType::f8_e4m3, {10, 8, 1}},
    Row{DType::f8_e4m3fnuz, {11, 8, 1}},      Row{DType::f8_e5m2, {12, 8, 1}},
    Row{DType::f8_e5m2fnuz, {13, 8, 1}},      Row{DType::f8_e8m0, {14, 8, 1}},
};

// Returns the type of integers with as many bits, for consumers that lack the type: in DLPack, torch 1.13 has u8 but no
// other unsigned types, no 8-bit floats and no bool.
DLDataType make_bits_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(info(dtype).bits);
  return bits == 8 ? DLDataType{kUInt, 8, 1} : DLDataType{kInt, bits, 1};
}

DLDataType find_dlpack_type(DType dtype, bool bits) {
  if (bits) return make_bits_type(dtype);
  for (const Row& row : kTypes) {
    if (row.dtype == dtype) return row.dlpack;
  }
  throw py::buffer_error(fmt::format("DLPack has no type for {}; .numpy(dtype=\"f32\") decodes it", to_string(dtype)));
}

struct Exported {
  DLManagedTensor managed{};
  Memory memory;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

void delete_exported(DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); }

// Frees the array of a capsule that was not consumed.
void delete_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kFresh) == 0) return;
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  managed->deleter(managed);
}

py::capsule make_capsule(std::unique_ptr<Exported> exported) {
  PyObject* const capsule = PyCapsule_New(&exported->managed, kFresh, &delete_capsule);
  if (capsule == nullptr) throw py::error_already_set();
  (void)exported.release();
  return py::reinterpret_steal<py::capsule>(capsule);
}

DType find_dtype(const DLDataType& type) {
  for (const Row& row : kTypes) {
    if (row.dlpack.code == type.code && row.dlpack.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw py::buffer_error(fmt::format("DLPack's type (code {}, {} bits, {} lanes) is not a type that files hold",
                                     type.code, type.bits, type.lanes));
}

// Copies elements with any strides to row-major order.
void copy_strided(const DLTensor& from, std::size_t dimension, const std::byte* in, std::size_t width,
                  std::byte*& out) {
  if (dimension == static_cast<std::size_t>(from.ndim)) {
    std::memcpy(out, in, width);
    out += width;
    return;
  }
  for (std::int64_t i = 0; i < from.shape[dimension]; ++i) {
    copy_strided(from, dimension + 1, in + i * from.strides[dimension] * static_cast<std::int64_t>(width), width, out);
  }
}

bool is_row_major(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// Returns (dtype, shape, Memory) of a capsule: its memory, or a copy if the elements are not in row-major order. Marks
// the capsule as used, in both cases. Throws BufferError for arrays that Poise cannot take, without marking it.
py::tuple consume_capsule(const py::object& object) {
  if (PyCapsule_IsValid(object.ptr(), kFresh) == 0)
    throw py::buffer_error("this is not a DLPack capsule, or it has been used already");
  auto* const managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(object.ptr(), kFresh));
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.device.device_type != kCpu)
    throw py::buffer_error("the array is not in the processor's memory; move it there first");
  const DType dtype = find_dtype(tensor.dtype);
  const std::uint64_t width = info(dtype).bits / 8;
  std::uint64_t count = 1;
  py::tuple shape(static_cast<std::size_t>(tensor.ndim));
  for (std::int32_t i = 0; i < tensor.ndim; ++i) {
    count *= static_cast<std::uint64_t>(tensor.shape[i]);
    shape[static_cast<std::size_t>(i)] = tensor.shape[i];
  }
  auto* first = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  Memory memory;
  if (PyCapsule_SetName(object.ptr(), kUsed) != 0) throw py::error_already_set();
  std::shared_ptr<const void> owner(managed, [](DLManagedTensor* used) {
    if (used->deleter == nullptr) return;
    const Taken taken;
    used->deleter(used);
  });
  if (count == 0 || is_row_major(tensor)) {
    memory = {first, count * width, false, std::move(owner)};
  } else {
    memory = make_memory(count * width);
    std::byte* out = memory.data;
    copy_strided(tensor, 0, first, static_cast<std::size_t>(width), out);
  }
  return py::make_tuple(make_text(to_string(dtype)), shape, std::move(memory));
}

}  // namespace

py::capsule make_dlpack_capsule(const HeldElements& elements, std::optional<DType> as, bool bits) {
  const DType own = elements.require_dtype();
  const DType given = as.value_or(own);
  const DLDataType type = find_dlpack_type(given, bits);
  const std::uint64_t width = info(given).bits / 8;
  std::optional<Placed> placed;
  if (given == own) {
    const Released released;
    placed = elements.make_writable();
  }
  if (!placed) {
    placed.emplace();
    placed->memory = read_interruptibly(elements, as);
    placed->strides = Strided::make_whole(Shape(elements.place.shape.begin(), elements.place.shape.end())).strides;
    for (std::uint64_t& stride : placed->strides) stride *= width;
  }
  auto exported = std::make_unique<Exported>();
  for (std::size_t i = 0; i < elements.place.shape.size(); ++i) {
    exported->shape.push_back(static_cast<std::int64_t>(elements.place.shape[i]));
    exported->strides.push_back(static_cast<std::int64_t>(placed->strides[i] / width));
  }
  exported->memory = std::move(placed->memory);
  exported->managed = {{exported->memory.data + placed->offset,
                        {kCpu, 0},
                        static_cast<std::int32_t>(elements.place.shape.size()),
                        type,
                        exported->shape.data(),
                        exported->strides.data(),
                        0},
                       exported.get(),
                       &delete_exported};
  return make_capsule(std::move(exported));
}

void declare_dlpack(py::module_& module) {
  module.def("from_dlpack", &consume_capsule, py::arg("capsule"),
             "Return (dtype, shape, Memory) of a DLPack capsule, which cannot be used again.");
}

}  // namespace poise::python
