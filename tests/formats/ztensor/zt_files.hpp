// Helpers for tests of zTensor files: files in memory, and the errors of refused ones.
#pragma once

#include <string>

#include "support/bytes.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"

namespace poise {

inline Model read(const std::string& file, const std::string& name = "test.zt") {
  return open(support::source(file, name));
}

inline std::string written(const Model& model, const Format& format, const WriteOptions& options = {}) {
  return support::to_string(support::written(model, format, options));
}

// Returns the error of opening a file; empty if it opens.
inline std::string refusal(const std::string& file) {
  return support::message_of([&] { read(file); });
}

}  // namespace poise
