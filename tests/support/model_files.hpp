// Models read from and written to files in memory.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poise/format.hpp>

#include "formats/format.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/memory_output.hpp"

namespace poise::support {

// Reads a model. `name` is the file's path in errors.
inline Model read(std::vector<std::byte> file, std::string name) {
  return open(Source::from_memory(std::move(file), std::move(name)));
}

inline std::vector<std::byte> written(const Model& model, const Format& format, const WriteOptions& options = {}) {
  MemoryOutput output("test" + std::string(format.info.extension));
  write_model(model, format, output, options);
  return output.take();
}

// Holds the files of a directory by their names.
using Files = std::map<std::string, std::vector<std::byte>>;
inline Files written_files(const Model& model, const Format& format, const WriteOptions& options = {}) {
  MemoryOutput output("test");
  write_model(model, format, output, options);
  return output.take_files();
}

// Reads the model of such files, and writes them to the directory for that. Requires: it exists and is empty.
inline Model read(const Files& files, const std::filesystem::path& directory) {
  for (const auto& [name, bytes] : files) {
    put(directory / name, to_string(bytes));
  }
  return open(directory);
}

}  // namespace poise::support
