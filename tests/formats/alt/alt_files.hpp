// Reading and writing ALT files in memory.
#pragma once

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "formats/format.hpp"

namespace poise {

inline Model read(std::vector<std::byte> bytes) { return open(Source::from_memory(std::move(bytes), "test.alt")); }

inline std::vector<std::byte> written(const Model& model, const Format& format, const WriteOptions& options = {}) {
  MemoryOutput output("test.alt");
  write_model(model, format, output, options);
  return output.take();
}

// What `action` throws.
template <typename Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "nothing was thrown");
}

}  // namespace poise
