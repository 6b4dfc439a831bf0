// Memory: bytes that numpy, torch and whoever takes buffers may use, and what keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <poise/blob.hpp>

#include "face.hpp"

namespace poise::python {

struct Memory {
  std::byte* data = nullptr;
  std::uint64_t size = 0;
  bool writable = false;
  std::shared_ptr<const void> owner;  // of the bytes
};

// Fresh bytes, not initialized, aligned to 64. Throws std::bad_alloc.
Memory make_memory(std::uint64_t size);

// A file's bytes [offset, offset + length) to write to: pages that are written to become copies of their own, and the
// file never changes. Throws io. Requires: the source has a descriptor and that many bytes.
Memory map_privately(const Source& source, std::uint64_t offset, std::uint64_t length);

// The bytes that a Python object lends, in order. They are given back, under the GIL, when the blob goes. Throws what
// asking for them raises.
BlobPtr borrow(py::handle object);

}  // namespace poise::python
