// A checkpoint's tensors are views of storages, which are runs of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

#include "syntax/pickle.hpp"

namespace poise::pytorch {

// Names a storage, as a pickle does.
struct StorageName {
  std::string type;  // the class: "torch.FloatStorage"
  std::string_view key;
  DType dtype = DType::u8;
  std::uint64_t elements = 0;  // the number of elements in the whole storage
  std::uint64_t first = 0;     // the element from which the offsets of views count; 0 except in files of old versions
};

// Reads a persistent object that names a storage. Throws invalid_file if it names none, and unsupported for element
// types that Poise lacks.
StorageName read_storage_name(const pickle::Pickle& pickle, pickle::Id id, const std::string& path);

struct Storages {
  virtual ~Storages() = default;
  // Returns all bytes of a storage. Throws invalid_file (without path) if it is missing, or has another size.
  virtual BlobPtr find(const StorageName& name) = 0;
  // Returns true if the numbers in the storages are big-endian.
  virtual bool is_big_endian() const { return false; }
};

}  // namespace poise::pytorch
