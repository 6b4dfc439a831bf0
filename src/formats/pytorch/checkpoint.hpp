// What a pickle of torch.save() says: tensors by their names, and whatever else is beside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/tensor.hpp>

#include "bytes/function_ref.hpp"
#include "syntax/pickle.hpp"

namespace poise::pytorch {

inline constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{1} << 30;  // of the objects

// A run of bytes that tensors are views of, as a pickle names it.
struct StorageName {
  std::string_view key;
  DType dtype = DType::u8;
  std::uint64_t elements = 0;  // of the whole storage
  std::uint64_t first = 0;     // element of it that views count from: files of old versions
};

// A persistent object that names a storage. Throws invalid_file for other ones, and unsupported for element types that
// Poise does not have.
StorageName storage_name(const pickle::Pickle& pickle, pickle::Id id, const std::string& path);

// What has been read beside tensors.
struct Rest {
  Attributes attributes;
  std::vector<Finding> findings;
};

struct Storages {
  virtual ~Storages() = default;
  // All bytes of a storage. Throws invalid_file (without path) where it is not there, or has another size.
  virtual BlobPtr find(const StorageName& name) = 0;
  // Numbers in them are big-endian.
  virtual bool big_endian() const { return false; }
};

// Gives the tensors in the order in which the pickle has them, with names of nested dicts and lists joined by dots. A
// dict under "state_dict", "model" or "module" that alone has tensors gives its own names. What is no tensor becomes an
// attribute. Names of functions and classes that no checkpoint needs are told as errors; an object of one, as a
// warning where it is left out. Throws unsupported, with the name, where tensors are in such an object, and
// invalid_file. What `take` throws without an offset gets that of the tensor.
Rest read_objects(const pickle::Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> take);

}  // namespace poise::pytorch
