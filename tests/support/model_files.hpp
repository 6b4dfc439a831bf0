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

// `name` is its path in errors.
inline Model read(std::vector<std::byte> file, std::string name) {
  return open(Source::from_memory(std::move(file), std::move(name)));
}

inline std::vector<std::byte> written(const Model& model, const Format& format, const WriteOptions& options = {}) {
  MemoryOutput output("test" + std::string(format.info.extension));
  write_model(model, format, output, options);
  return output.take();
}

// Of a format of directories: the files by their names.
using Files = std::map<std::string, std::vector<std::byte>>;
inline Files written_files(const Model& model, const Format& format, const WriteOptions& options = {}) {
  MemoryOutput output("test");
  write_model(model, format, output, options);
  return output.take_files();
}

// The model of such files, put into a directory that is there and empty.
inline Model read(const Files& files, const std::filesystem::path& directory) {
  for (const auto& [name, bytes] : files) {
    put(directory / name, to_string(bytes));
  }
  return open(directory);
}

}  // namespace poise::support
