// Models read from and written to files in memory.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poise/format.hpp>

#include "formats/format.hpp"
#include "io/sink.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"

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
class FilesOutput final : public Output {
 public:
  Sink& main() override { return sinks_["main"]; }
  Sink& main_named(const std::string& name) override { return sinks_[name]; }
  Sink& sibling(const std::string& name) override { return sinks_[name]; }
  std::string name() const override { return "test"; }
  Files take() {
    Files files;
    for (auto& [name, sink] : sinks_) files.emplace(name, sink.take());
    return files;
  }

 private:
  std::map<std::string, MemorySink> sinks_;
};
inline Files written_files(const Model& model, const Format& format, const WriteOptions& options = {}) {
  FilesOutput output;
  write_model(model, format, output, options);
  return output.take();
}

// The model of such files, put into a directory that is there and empty.
inline Model read(const Files& files, const std::filesystem::path& directory) {
  for (const auto& [name, bytes] : files) {
    put(directory / name, to_string(bytes));
  }
  return open(directory);
}

}  // namespace poise::support
