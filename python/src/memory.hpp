// Memory: bytes for numpy, torch and other users of buffers, with their owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include <poise/blob.hpp>

#include "face.hpp"

namespace poise::python {

// Holds bytes and keeps their owner alive.
struct Memory {
  std::byte* data = nullptr;
  std::uint64_t size = 0;
  bool writable = false;
  std::shared_ptr<const void> owner;
};

// Returns new bytes, not initialized, aligned to 64 bytes. Throws std::bad_alloc.
Memory make_memory(std::uint64_t size);

Memory copy_to_memory(std::span<const float> numbers);

// Returns private writable pages of a file's bytes [offset, offset + length): writing to them does not change the file.
// Throws io. Requires: the source has a descriptor and these bytes.
Memory map_privately(const Source& source, std::uint64_t offset, std::uint64_t length);

// Returns a blob of the bytes that a Python object lends by the buffer protocol. The blob's destructor acquires the GIL
// and releases them. Throws the exception that requesting them raises.
BlobPtr borrow_buffer(py::handle object);

// Keeps the last buffer that the loading blobs of a model have loaded, so that a second read does not load it again.
struct LoadedBuffers {
  std::mutex mutex;
  BlobPtr newest;
};

// Returns a blob of `size` bytes, which `load` returns as a buffer. Reading the blob calls `load` with the GIL, and
// throws what that raises, and bad_argument for a buffer of another size. The buffer is released when its last stream
// has ended and `loaded` has a newer one.
BlobPtr make_loading_blob(py::object load, std::uint64_t size, std::shared_ptr<LoadedBuffers> loaded);

}  // namespace poise::python
