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

struct Memory {
  std::byte* data = nullptr;
  std::uint64_t size = 0;
  bool writable = false;
  std::shared_ptr<const void> owner;  // of the bytes
};

// Returns new bytes, not initialized, aligned to 64. Throws std::bad_alloc.
Memory make_memory(std::uint64_t size);

// Returns a copy of numbers.
Memory memory_of(std::span<const float> numbers);

// Returns private writable pages of a file's bytes [offset, offset + length): the file never changes. Throws io.
// Requires: the source has a descriptor and that many bytes.
Memory map_privately(const Source& source, std::uint64_t offset, std::uint64_t length);

// Returns the bytes that a Python object lends, in order. Destroying the blob returns them, under the GIL. Throws what
// requesting them raises.
BlobPtr borrow(py::handle object);

// The buffers that loading blobs of one model hold. The newest stays, so that reading it again loads nothing.
struct LoadedBuffers {
  std::mutex mutex;
  BlobPtr newest;
};

// Returns the bytes of the buffer that `load` returns, `size` of them. Calls it under the GIL when the bytes are read,
// and lets the buffer go when its last stream ends and another one of `loaded` is newer. Throws what `load` raises, and
// bad_argument for a buffer of another size.
BlobPtr make_loading_blob(py::object load, std::uint64_t size, std::shared_ptr<LoadedBuffers> loaded);

}  // namespace poise::python
