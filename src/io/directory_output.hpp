// DirectoryOutput: a directory of files that appears whole or not at all.
//
// Its files are written beside the target and have no names until commit() puts them into a hidden directory and
// renames it: a process that is killed before leaves nothing. Should it be killed during these instants, the next save
// to that target removes the hidden directory. A directory that is replaced changes places with the new one and is
// removed then: at every moment there is the old one or the new one.
#pragma once

#include <sys/types.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.hpp"
#include "io/file_descriptor.hpp"
#include "io/sink.hpp"

namespace poise {

class DirectoryOutput final : public SavedOutput {
 public:
  // Why a directory of files with these names, sorted, is not to be replaced; empty: it may be.
  using RefusalToReplace = std::function<std::string(const std::vector<std::string>& names)>;

  // Throws the bad_argument that the constructor would throw. Makes nothing. Returns what commit() will replace, as a
  // sentence; empty: nothing.
  static std::string require_possible(const std::filesystem::path& path, bool overwrite,
                                      const RefusalToReplace& refusal_to_replace,
                                      const std::vector<std::filesystem::path>& inputs);

  // Throws bad_argument where the target is there and `overwrite` is false, is no directory, is a link, holds anything
  // but regular files and folders of them, one of the `inputs`, or what `refusal_to_replace` wants to stay. Files throw
  // what AtomicFile throws.
  DirectoryOutput(const std::filesystem::path& path, bool overwrite, RefusalToReplace refusal_to_replace,
                  std::vector<std::filesystem::path> inputs = {});
  ~DirectoryOutput() override;
  DirectoryOutput(const DirectoryOutput&) = delete;
  DirectoryOutput& operator=(const DirectoryOutput&) = delete;

  // A directory has no main file: each is a sibling().
  Sink& main() override;
  Sink& main_named(const std::string& name) override;
  Sink& sibling(const std::string& name) override;
  std::string name() const override { return target_.filename().string(); }
  std::uint64_t bytes() const override;
  std::uint64_t padding() const override;
  std::vector<std::filesystem::path> paths() const override { return {target_}; }
  std::string replaces() const override { return replaces_; }
  void commit() override;

 private:
  void make_hidden();
  void replace();

  std::filesystem::path target_;
  std::filesystem::path hidden_;  // the directory while it is committed; empty: there is none
  bool overwrite_;
  RefusalToReplace refusal_to_replace_;
  std::vector<std::filesystem::path> inputs_;
  std::string replaces_;
  std::optional<mode_t> mode_;  // of the directory that is replaced
  FileDescriptor lock_;         // of the hidden directory: a save that goes on holds it
  std::deque<AtomicFile> files_;
  std::vector<std::string> names_;  // of the files
};

}  // namespace poise
