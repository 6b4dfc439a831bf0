// The contents of a pickle of torch.save(): tensors by their names, and everything else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/tensor.hpp>

#include "bytes/function_ref.hpp"
#include "formats/faulty_model.hpp"
#include "formats/pytorch/storages.hpp"
#include "syntax/pickle.hpp"

namespace poise::pytorch {

// What was read besides tensors.
struct Rest {
  Attributes attributes;
  std::vector<Finding> findings;
  Faults faults;  // of tensors that were not passed on
};

// Passes on the tensors in the pickle's order, with names of nested dicts and lists joined by dots. If a dict under
// "state_dict", "model" or "module" has all the tensors, its own names are used. Other objects become attributes.
// Reports names of functions and classes that no checkpoint needs as errors, and objects of them that are left out as
// warnings. Goes on after a tensor that is faulty or not supported, until there are enough (Rest::faults). Throws
// unsupported, with the name, if an object of such a class contains tensors, and invalid_file. Adds name and offset of
// the tensor to errors of `take`.
Rest read_objects(const pickle::Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> take);

}  // namespace poise::pytorch
