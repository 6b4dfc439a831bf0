// Models read from and written to files in memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <poise/format.hpp>

#include "formats/format.hpp"

namespace poise::support {

// `name` stands for the path.
inline Model read(std::vector<std::byte> file, std::string name) { return open(Source::from_memory(std::move(file), std::move(name))); }

inline std::vector<std::byte> written(const Model& model, const Format& format, const WriteOptions& options = {}) {
  MemoryOutput output("test" + std::string(format.info.extension));
  write_model(model, format, output, options);
  return output.take();
}

}  // namespace poise::support
