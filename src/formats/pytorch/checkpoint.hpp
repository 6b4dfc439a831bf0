// What a pickle of torch.save() says: tensors by their names, and whatever else is beside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/tensor.hpp>

#include "bytes/function_ref.hpp"
#include "formats/pytorch/storages.hpp"
#include "syntax/pickle.hpp"

namespace poise::pytorch {

inline constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{1} << 30;  // of the objects

// What has been read beside tensors.
struct Rest {
  Attributes attributes;
  std::vector<Finding> findings;
};

// Gives the tensors in the order in which the pickle has them, with names of nested dicts and lists joined by dots. A
// dict under "state_dict", "model" or "module" that alone has tensors gives its own names. What is no tensor becomes an
// attribute. Names of functions and classes that no checkpoint needs are told as errors; an object of one, as a
// warning where it is left out. Throws unsupported, with the name, where tensors are in such an object, and
// invalid_file. What `take` throws without an offset gets that of the tensor.
Rest read_objects(const pickle::Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> take);

}  // namespace poise::pytorch
