// Errors that name tensor, part and place: a decoder's error knows the place in a file alone, one of casts and codes
// the tensor alone.
#pragma once

#include <initializer_list>

#include <poise/error.hpp>
#include <poise/model.hpp>

namespace poise {

// The same error with "tensor NAME: ROLE: " before its message, where it tells of damage inside a part of one of the
// models and does not name a tensor yet. With the place of the tensor's part where it names a tensor of one of the
// models and no file. Where tensors share their bytes, the first counts.
Error with_part_named(const Error& error, std::initializer_list<const Model*> models);

// Calls work(); what it throws names the part.
template <typename Work>
auto naming_parts(std::initializer_list<const Model*> models, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw with_part_named(error, models);
  }
}

}  // namespace poise
