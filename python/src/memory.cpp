#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace poise::python {
namespace {

constexpr std::size_t kAlignment = 64;

class BorrowedBlob final : public Blob {
 public:
  explicit BorrowedBlob(py::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw py::error_already_set();
  }
  ~BorrowedBlob() override {
    const Taken taken;
    PyBuffer_Release(&view_);
  }

  std::uint64_t size() const override { return static_cast<std::uint64_t>(view_.len); }
  std::optional<std::span<const std::byte>> map() const override {
    return std::span(static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len));
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) std::memcpy(out.data(), map()->data() + offset, out.size());
  }

 private:
  Py_buffer view_{};
};

class LoadingBlob final : public Blob {
 public:
  LoadingBlob(py::object load, std::uint64_t size, std::shared_ptr<LoadedBuffers> loaded)
      : load_(std::move(load)), size_(size), loaded_(std::move(loaded)) {}
  ~LoadingBlob() override {
    const Taken taken;
    load_ = py::object();
  }

  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return false; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { load_buffer()->read(offset, out); }
  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<Stream>(load_buffer()); }

 private:
  // Holds the buffer until the stream ends.
  class Stream final : public BlobStream {
   public:
    explicit Stream(BlobPtr buffer) : buffer_(std::move(buffer)), stream_(buffer_->stream()) {}
    std::size_t read(std::span<std::byte> out) override { return stream_->read(out); }

   private:
    BlobPtr buffer_;
    std::unique_ptr<BlobStream> stream_;
  };

  BlobPtr load_buffer() const {
    {
      const std::lock_guard lock(loaded_->mutex);
      if (BlobPtr held = held_.lock()) return held;
    }
    BlobPtr made;
    BlobPtr before;  // is destroyed without the mutex, because its destructor acquires the GIL
    {
      const Taken taken;
      PyObject* const called = survive_unwinding([&] { return PyObject_CallObject(load_.ptr(), nullptr); });
      if (called == nullptr) throw py::error_already_set();
      made = std::make_shared<BorrowedBlob>(py::reinterpret_steal<py::object>(called));
    }
    if (made->size() != size_)
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the mapping returned an array of {} bytes, expected {} as before", made->size(), size_));
    const std::lock_guard lock(loaded_->mutex);
    before = std::exchange(loaded_->newest, made);
    held_ = made;
    return made;
  }

  py::object load_;
  std::uint64_t size_;
  std::shared_ptr<LoadedBuffers> loaded_;
  mutable std::weak_ptr<const Blob> held_;
};

int lend_memory(PyObject* self, Py_buffer* view, int flags) {
  try {
    auto& memory = py::cast<Memory&>(py::handle(self));
    static std::byte nothing{};
    void* data = memory.data == nullptr ? &nothing : memory.data;
    return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(memory.size), memory.writable ? 0 : 1, flags);
  } catch (...) {
    PyErr_SetString(PyExc_BufferError, "expected an object of poise._poise.Memory");
    return -1;
  }
}

}  // namespace

Memory make_memory(std::uint64_t size) {
  if (size > PTRDIFF_MAX - kAlignment) throw std::bad_alloc();
  const std::size_t room = (static_cast<std::size_t>(size) + kAlignment) / kAlignment * kAlignment;
  void* const data = std::aligned_alloc(kAlignment, room);
  if (data == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(data), size, true,
          std::shared_ptr<const void>(data, [](void* bytes) { std::free(bytes); })};
}

Memory copy_to_memory(std::span<const float> numbers) {
  Memory memory = make_memory(numbers.size_bytes());
  std::ranges::copy(std::as_bytes(numbers), memory.data);
  return memory;
}

Memory map_privately(const Source& source, std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return make_memory(0);
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  const auto size = static_cast<std::size_t>(offset + length - begin);
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, source.descriptor(),
                               static_cast<off_t>(begin));
  if (address == MAP_FAILED)
    throw Error(ErrorKind::io, fmt::format("cannot map {} bytes: {}", size, std::strerror(errno)), source.name(),
                offset);
  std::shared_ptr<const void> owner(address, [size](void* mapped) { ::munmap(mapped, size); });
  return {static_cast<std::byte*>(address) + (offset - begin), length, true, std::move(owner)};
}

BlobPtr make_loading_blob(py::object load, std::uint64_t size, std::shared_ptr<LoadedBuffers> loaded) {
  return std::make_shared<LoadingBlob>(std::move(load), size, std::move(loaded));
}

BlobPtr borrow_buffer(py::handle object) { return std::make_shared<BorrowedBlob>(object); }

void declare_memory(py::module_& module) {
  const auto buffers = py::custom_type_setup([](PyHeapTypeObject* type) {
    type->ht_type.tp_as_buffer = &type->as_buffer;
    type->as_buffer.bf_getbuffer = &lend_memory;
  });
  py::class_<Memory>(module, "Memory",
                     "Bytes for users of the buffer protocol. They live as long as an object that uses them.", buffers)
      .def("__len__", [](const Memory& memory) { return memory.size; });
}

}  // namespace poise::python
