// Gives Python tensors: their slices, their elements as memory, their parts.

#include "elements.hpp"
#include "views/dense.hpp"

namespace poise::python {
namespace {

using Owner = std::shared_ptr<OpenModel>;

[[noreturn]] void raise_key_error(const py::handle& name) {
  PyErr_SetObject(PyExc_KeyError, name.ptr());
  throw py::error_already_set();
}

Elements find_tensor(const Owner& owner, const py::object& given) {
  const auto model = owner->require_model();
  const auto name = parse_name(given);
  if (!name) raise_key_error(given);
  if (const Tensor* const found = model->find(*name)) return {owner, *found};
  const std::vector<const Tensor*> in_file = model->find_in_file(*name);
  if (in_file.size() > 1) {
    raise_key_error(
        make_text(fmt::format("\"{}\" names {} tensors, such as {}", *name, in_file.size(), in_file.front()->name)));
  }
  if (in_file.empty()) raise_key_error(given);
  return {owner, *in_file.front()};
}

Elements get_tensor_at(const Owner& owner, std::size_t index) {
  const auto model = owner->require_model();
  if (index >= model->size())
    throw py::index_error(fmt::format("tensor {} is out of range: there are {}", index, model->size()));
  return {owner, model->tensors()[index]};
}

// Applies the keys of a subscript, one dimension after another.
class Slicer {
 public:
  explicit Slicer(const Strided& from) : from_(from) { result_.first = from.first; }

  Strided apply_keys(const py::tuple& keys) {
    std::size_t ellipses = 0;
    for (const py::handle key : keys) ellipses += std::size_t{key.ptr() == Py_Ellipsis};
    const std::size_t named = keys.size() - ellipses;
    if (ellipses > 1) throw py::index_error("expected at most one ellipsis (...)");
    if (named > from_.shape.size())
      throw py::index_error(fmt::format("expected at most {} indices, found {}", from_.shape.size(), named));
    for (const py::handle key : keys) {
      if (key.ptr() == Py_Ellipsis) {
        keep_dimensions(from_.shape.size() - named);
      } else {
        narrow(key);
      }
    }
    keep_dimensions(from_.shape.size() - dimension_);
    if (result_.count() == 0) result_.first = 0;  // an empty tensor has no first element
    return std::move(result_);
  }

 private:
  void keep_dimensions(std::size_t dimensions) {
    for (std::size_t i = 0; i < dimensions; ++i, ++dimension_) add(from_.shape[dimension_], from_.strides[dimension_]);
  }

  void narrow(const py::handle& key) {
    const auto size = static_cast<Py_ssize_t>(from_.shape[dimension_]);
    const std::uint64_t stride = from_.strides[dimension_];
    ++dimension_;
    if (PySlice_Check(key.ptr())) {
      Py_ssize_t start = 0, stop = 0, step = 0;
      if (PySlice_Unpack(key.ptr(), &start, &stop, &step) != 0) throw py::error_already_set();
      if (step < 0) throw py::value_error("slices of tensors go forward; .numpy()[::-1] goes backward");
      const Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
      if (count > 0) result_.first += static_cast<std::uint64_t>(start) * stride;
      return add(static_cast<std::uint64_t>(count), count > 1 ? stride * static_cast<std::uint64_t>(step) : stride);
    }
    // Booleans are integers, too, but have another meaning in numpy.
    if (is_boolean(key) || PyIndex_Check(key.ptr()) == 0) {
      throw py::type_error(fmt::format("tensors take integers, slices and ... as indices, not {}; .numpy() takes more",
                                       Py_TYPE(key.ptr())->tp_name));
    }
    Py_ssize_t index = PyNumber_AsSsize_t(key.ptr(), PyExc_IndexError);
    if (index == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (index < -size || index >= size)
      throw py::index_error(fmt::format("index {} is out of range: the dimension has {}", index, size));
    if (index < 0) index += size;
    result_.first += static_cast<std::uint64_t>(index) * stride;
  }

  void add(std::uint64_t size, std::uint64_t stride) {
    result_.shape.push_back(size);
    result_.strides.push_back(stride);
  }

  const Strided& from_;
  Strided result_;
  std::size_t dimension_ = 0;
};

Elements make_slice(const Elements& from, const py::object& key) {
  const py::tuple keys = py::isinstance<py::tuple>(key) ? py::reinterpret_borrow<py::tuple>(key) : py::make_tuple(key);
  return {from, Slicer(from.place()).apply_keys(keys)};
}

// Returns (dtype, shape, Memory, offset, strides) of the elements. If they are not mapped, Memory is None, and the
// caller must read them. If they are in row-major order, strides is None.
py::tuple make_view(const Elements& elements) {
  const HeldElements held = elements.hold();
  const py::str dtype = make_text(to_string(held.require_dtype()));
  std::optional<Placed> placed = held.find_mapped();
  if (!placed) return py::make_tuple(dtype, to_tuple(held.place.shape), py::none(), 0, py::none());
  const py::object strides = held.place.is_contiguous() ? py::object(py::none()) : to_tuple(placed->strides);
  return py::make_tuple(dtype, to_tuple(held.place.shape), std::move(placed->memory), placed->offset, strides);
}

// Returns a copy in row-major order; elements of 4 bits are packed as in files.
Memory read_packed(const Elements& elements) {
  const HeldElements held = elements.hold();
  Memory memory = read_interruptibly(held, std::nullopt);
  if (info(held.require_dtype()).bits != 4) return memory;
  const std::uint64_t count = held.place.count();
  std::byte* const bytes = memory.data;  // each holds one element; the loop packs two into one byte
  for (std::uint64_t i = 0; i < count; i += 2)
    bytes[i / 2] = bytes[i] | (i + 1 < count ? bytes[i + 1] << 4 : std::byte{});
  memory.size = (count + 1) / 2;
  return memory;
}

// ---- the buffer protocol ----

// Returns the letters of the buffer protocol for a type; null for types without letters.
const char* find_buffer_letters(DType dtype) {
  switch (dtype) {
    case DType::f64: return "d";
    case DType::f32: return "f";
    case DType::f16: return "e";
    case DType::complex64: return "Zf";
    case DType::complex128: return "Zd";
    case DType::i64: return "q";
    case DType::i32: return "i";
    case DType::i16: return "h";
    case DType::i8: return "b";
    case DType::u64: return "Q";
    case DType::u32: return "I";
    case DType::u16: return "H";
    case DType::u8: return "B";
    case DType::boolean: return "?";
    default: return nullptr;
  }
}

struct Lent {
  Memory memory;
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

int refuse_buffer(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  return -1;
}

int lend_tensor(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const HeldElements held = py::cast<const Elements&>(py::handle(self)).hold();
    const auto dtype = held.dtype();
    const char* const format = dtype ? find_buffer_letters(*dtype) : nullptr;
    auto placed = format == nullptr ? std::nullopt : held.find_mapped();
    if (!placed)
      return refuse_buffer("the elements are not in memory as numbers that buffers have; .numpy() decodes them");
    if ((flags & PyBUF_WRITABLE) != 0) return refuse_buffer("a model's bytes are read-only");
    const bool run = held.place.is_contiguous();
    if (!run && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
      return refuse_buffer("the elements are not contiguous; .numpy() can copy them");
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && held.place.shape.size() > 1)
      return refuse_buffer("the elements are in row-major order");
    auto lent = std::make_unique<Lent>();
    for (const std::uint64_t size : held.place.shape) lent->shape.push_back(static_cast<Py_ssize_t>(size));
    for (const std::uint64_t stride : placed->strides) lent->strides.push_back(static_cast<Py_ssize_t>(stride));
    lent->memory = std::move(placed->memory);
    const std::uint64_t width = info(*dtype).bits / 8;
    view->buf = lent->memory.data + placed->offset;
    view->len = static_cast<Py_ssize_t>(held.place.count() * width);
    view->readonly = 1;
    view->itemsize = static_cast<Py_ssize_t>(width);
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;  // the protocol has no const
    const bool shaped = (flags & PyBUF_ND) != 0;
    view->ndim = shaped ? static_cast<int>(lent->shape.size()) : 1;
    view->shape = shaped ? lent->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? lent->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = lent.release();
    view->obj = self;
    Py_INCREF(self);
    return 0;
  } catch (const std::exception& error) {
    return refuse_buffer(error.what());
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Lent*>(view->internal); }

// ---- the sequence protocol ----

PyObject* get_item_for_c(PyObject* self, Py_ssize_t index) { return PyObject_CallMethod(self, "_item", "n", index); }

// Sets the item function of a class for C code: PySequence_GetItem() then calls _item() instead of __getitem__().
void set_item_function(const py::type& type) {
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()),
                        reinterpret_cast<PyTypeObject*>(py::type::of<Elements>().ptr())))
    throw py::type_error("expected a class of Elements");
  reinterpret_cast<PyHeapTypeObject*>(type.ptr())->as_sequence.sq_item = &get_item_for_c;
}

// ---- parts ----

// Returns a tuple for each part: (role, dtype, decoded size, path, offset, stored size, encoding, digest). Sizes are in
// bytes; path to encoding are None if the part is not stored in a file, and digest is None if it has none.
py::list list_tensor_parts(const Elements& elements) {
  const auto tensor = elements.hold_tensor();
  py::list result;
  for (const Part& part : tensor->parts) {
    const auto stored = part.blob->stored();
    result.append(py::make_tuple(make_text(part.role), make_text(part.shown_type()), part.blob->size(),
                                 stored ? py::object(make_text(stored->source->name())) : py::none(),
                                 stored ? py::object(py::int_(stored->offset)) : py::none(),
                                 stored ? py::object(py::int_(stored->length)) : py::none(),
                                 stored ? py::object(make_text(stored->encoding)) : py::none(),
                                 part.digest ? py::object(make_text(part.digest->text)) : py::none()));
  }
  return result;
}

// Returns all decoded bytes of a part, in the mapped file if possible, else in a copy.
Memory read_part_bytes(const Elements& elements, const py::object& given) {
  const std::string role = encode_utf8(given);
  const auto tensor = elements.hold_tensor();
  const Part& part = tensor->require(role);
  const Released released;
  if (const auto bytes = part.blob->map()) {
    return {const_cast<std::byte*>(bytes->data()), bytes->size(), false, BlobPtr(part.blob)};  // NOLINT: read-only
  }
  Memory memory = make_memory(part.blob->size());
  read_strided(*part.blob, 1, Strided::make_whole({part.blob->size()}), memory.data);
  return memory;
}

std::optional<DType> parse_optional_dtype(const std::optional<std::string>& name) {
  return name ? std::optional(parse_dtype(*name)) : std::nullopt;
}

}  // namespace

void declare_tensors(py::module_& module) {
  const auto buffers = py::custom_type_setup([](PyHeapTypeObject* type) {
    type->ht_type.tp_as_buffer = &type->as_buffer;
    type->as_buffer.bf_getbuffer = &lend_tensor;
    type->as_buffer.bf_releasebuffer = &release_buffer;
  });
  py::class_<Elements>(module, "Elements", buffers)
      .def(py::init(&get_tensor_at), py::arg("model").none(false), py::arg("index"))
      .def(py::init(&find_tensor), py::arg("model").none(false), py::arg("name"))
      .def(py::init(&make_slice), py::arg("of"), py::arg("key"))
      .def_property_readonly("name", [](const Elements& elements) { return make_text(elements.hold_tensor()->name); })
      .def_property_readonly("file_name",
                             [](const Elements& elements) { return make_text(elements.hold_tensor()->name_in_file()); })
      .def_property_readonly(
          "shape",
          [](const Elements& elements) { return to_tuple((void(elements.hold_tensor()), elements.place().shape)); })
      .def_property_readonly(
          "size", [](const Elements& elements) { return (void(elements.hold_tensor()), elements.place().count()); })
      .def_property_readonly("dtype",
                             [](const Elements& elements) {
                               const auto type = elements.hold().dtype();
                               return type ? py::object(make_text(to_string(*type))) : py::object(py::none());
                             })
      .def("_require_dtype",
           [](const Elements& elements) { return make_text(to_string(elements.hold().require_dtype())); })
      .def("_has_floats", [](const Elements& elements) { return has_float_elements(*elements.hold_tensor()); })
      .def("_view", &make_view)
      .def(
          "_read",
          [](const Elements& elements, const std::optional<std::string>& dtype) {
            return read_interruptibly(elements.hold(), parse_optional_dtype(dtype));
          },
          py::arg("dtype") = py::none())
      .def("_packed", &read_packed)
      .def(
          "_dlpack",
          [](const Elements& elements, const std::optional<std::string>& dtype, bool bits) {
            return make_dlpack_capsule(elements.hold(), parse_optional_dtype(dtype), bits);
          },
          py::arg("dtype") = py::none(), py::arg("bits") = false)
      .def_property_readonly(
          "_stored", [](const Elements& elements) { return make_text(describe_stored_type(*elements.hold_tensor())); })
      .def_property_readonly("_layout",
                             [](const Elements& elements) { return make_text(elements.hold_tensor()->layout.name()); })
      .def_property_readonly("_attributes",
                             [](const Elements& elements) { return to_python(elements.hold_tensor()->attributes); })
      .def_property_readonly("_stored_bytes",
                             [](const Elements& elements) { return elements.hold_tensor()->size_bytes(); })
      .def("_parts", &list_tensor_parts)
      .def("_part_bytes", &read_part_bytes, py::arg("role"));
  module.def("set_item_function", &set_item_function, py::arg("type"));
  declare_dlpack(module);
}

}  // namespace poise::python
