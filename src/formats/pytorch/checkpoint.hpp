// The contents of a pickle of torch.save(): tensors by their names, and everything else.
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

// What was read besides tensors.
struct Rest {
  Attributes attributes;
  std::vector<Finding> findings;
};

// Passes on the tensors in the pickle's order, with names of nested dicts and lists joined by dots. If a dict under
// "state_dict", "model" or "module" has all the tensors, its own names are used. Other objects become attributes.
// Reports names of functions and classes that no checkpoint needs as errors, and objects of them that are left out as
// warnings. Throws unsupported, with the name, if such an object contains tensors, and invalid_file. Adds the tensor's
// offset to errors of `take` without one.
Rest read_objects(const pickle::Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> take);

}  // namespace poise::pytorch
