// Files written in memory, for tests and fuzzing.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/format.hpp"
#include "io/sink.hpp"

namespace poise {

class MemorySink final : public Sink {
 public:
  std::vector<std::byte> take() { return std::move(bytes_); }

 protected:
  void do_write(std::span<const std::byte> bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

 private:
  std::vector<std::byte> bytes_;
};

class MemoryOutput final : public Output {
 public:
  explicit MemoryOutput(std::string name) : name_(std::move(name)) {}
  Sink& main() override { return files_[name_]; }
  Sink& open_main(const std::string& name) override { return files_[name_ = name]; }
  Sink& open_sibling(const std::string& name) override { return files_[name]; }
  std::string name() const override { return name_; }

  // Returns the bytes of the main file.
  std::vector<std::byte> take() { return files_[name_].take(); }
  // Returns the bytes of all files, by their names.
  std::map<std::string, std::vector<std::byte>> take_files() {
    std::map<std::string, std::vector<std::byte>> files;
    for (auto& [name, sink] : files_) files.emplace(name, sink.take());
    return files;
  }

 private:
  std::string name_;
  std::map<std::string, MemorySink> files_;
};

inline std::vector<std::string> losses_of(const Model& model, const Format& format, const WriteOptions& options) {
  return prepare_file(model, format, options).losses;
}

}  // namespace poise
