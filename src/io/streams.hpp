// Makes sources and outputs of streams. An input such as a pipe is copied into a file without a name in the temporary
// directory ($TMPDIR), so that readers can go to any place in it. An output is written to its stream when it is
// complete; until then it is in such a file, too.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/atomic_file.hpp"
#include "io/sink.hpp"

namespace poise {

// Returns $TMPDIR, or the system's usual directory if it is not set or empty. Throws io if no file can be created
// there.
std::filesystem::path find_temporary_directory();

// Returns all bytes from the descriptor's position to its end. Errors call the source by `name`. Throws io.
SourcePtr read_stream(int descriptor, const std::string& name);

// Writes one file to a stream.
class StreamOutput final : public SavedOutput {
 public:
  // Requires: the descriptor outlives this. Errors call the stream by `name`.
  StreamOutput(int descriptor, std::string name);

  Sink& main() override { return file_; }
  Sink& open_main(const std::string&) override { return file_; }
  // Throws bad_argument, since a stream holds one file only.
  Sink& open_sibling(const std::string& name) override;
  std::string name() const override { return name_; }
  std::uint64_t bytes() const override { return file_.position(); }
  std::uint64_t padding() const override { return file_.padding(); }
  std::vector<std::filesystem::path> paths() const override { return {name_}; }
  // Writes the file to the stream. If it throws io, a part of the file may have been written.
  void commit() override;

 private:
  int descriptor_;
  std::string name_;
  AtomicFile file_;
};

}  // namespace poise
