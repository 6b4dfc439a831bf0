// A DirectoryOutput is a directory of files that appears whole or not at all.
//
// Its files are AtomicFiles next to the target, until commit() puts them into a hidden directory and renames that
// directory. If the process is killed during commit(), the next save to the target removes the hidden directory. Where
// the file system supports it, commit() exchanges the old directory with the new one and then removes the old one, so
// that the target is always one of the two.
#pragma once

#include <sys/types.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/atomic_file.hpp"
#include "io/file_descriptor.hpp"
#include "io/sink.hpp"

namespace poise {

class DirectoryOutput final : public SavedOutput {
 public:
  // Returns why a directory of files with these names, sorted, must not be replaced; an empty text if it may be.
  using RefusalToReplace = std::function<std::string(const std::vector<std::string>& names)>;

  // Throws the bad_argument that the constructor would throw. Creates nothing. Returns a sentence with the files that
  // commit() will delete; an empty text if there is no such directory yet.
  static std::string check_replaceable(const std::filesystem::path& path, bool overwrite,
                                       const RefusalToReplace& refusal_to_replace,
                                       const std::vector<std::filesystem::path>& inputs);

  // Throws bad_argument if the target is a link or a file, holds anything but regular files and folders of them, holds
  // one of the `inputs`, or exists although `overwrite` is false, and if `refusal_to_replace` returns a reason.
  // open_sibling() throws the errors of AtomicFile.
  DirectoryOutput(const std::filesystem::path& path, bool overwrite, RefusalToReplace refusal_to_replace,
                  std::vector<std::filesystem::path> inputs = {});
  ~DirectoryOutput() override;
  DirectoryOutput(const DirectoryOutput&) = delete;
  DirectoryOutput& operator=(const DirectoryOutput&) = delete;

  // Throws internal, since a directory has no main file. Open each file with open_sibling().
  Sink& main() override;
  Sink& open_main(const std::string& name) override;
  Sink& open_sibling(const std::string& name) override;
  std::string name() const override { return target_.filename().string(); }
  std::uint64_t bytes() const override;
  std::uint64_t padding() const override;
  std::vector<std::filesystem::path> paths() const override { return {target_}; }
  std::string describe_replacements() const override { return replaces_; }
  void commit() override;

 private:
  void create_hidden_directory();
  void replace();

  std::filesystem::path target_;
  std::filesystem::path hidden_;  // the directory during commit(); else empty
  bool overwrite_;
  RefusalToReplace refusal_to_replace_;
  std::vector<std::filesystem::path> inputs_;
  std::string replaces_;
  std::optional<mode_t> mode_;  // the mode of the replaced directory
  FileDescriptor lock_;         // the lock on the hidden directory; held while this save runs
  std::deque<AtomicFile> files_;
  std::vector<std::string> names_;  // for each of files_: its path in the directory
};

}  // namespace poise
