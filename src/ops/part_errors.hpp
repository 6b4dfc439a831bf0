// Completes errors with tensor, part and place: a decoder knows only the place in a file, casts and codes only the
// tensor.
#pragma once

#include <initializer_list>

#include <poise/error.hpp>
#include <poise/model.hpp>

namespace poise {

// The same error with "tensor NAME: ROLE: " before its message, if it reports damage inside a part of one of the models
// and names no tensor yet. If it names a tensor but no file, adds the place of the tensor's part. If tensors share
// their bytes, the first counts.
Error with_part_named(const Error& error, std::initializer_list<const Model*> models);

// Calls work() and adds the part to its errors.
template <typename Work>
auto naming_parts(std::initializer_list<const Model*> models, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw with_part_named(error, models);
  }
}

}  // namespace poise
