// Storages: the runs of bytes that a checkpoint's tensors are views of.
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
  std::uint64_t elements = 0;  // of the whole storage
  std::uint64_t first = 0;     // the element at which offsets of views begin; not 0 only in files of old versions
};

// Reads a persistent object that names a storage. Throws invalid_file for others, and unsupported for element types
// that Poise lacks.
StorageName read_storage_name(const pickle::Pickle& pickle, pickle::Id id, const std::string& path);

struct Storages {
  virtual ~Storages() = default;
  // Returns all bytes of a storage. Throws invalid_file (without path) if it is missing, or has another size.
  virtual BlobPtr find(const StorageName& name) = 0;
  // Returns true if their numbers are big-endian.
  virtual bool is_big_endian() const { return false; }
};

}  // namespace poise::pytorch
