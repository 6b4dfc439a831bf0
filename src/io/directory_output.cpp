#include "io/directory_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "io/directory.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr int kNameAttempts = 16;

// Removes the slash at the end of a path: "out/" becomes "out". Throws bad_argument for a path without a name.
fs::path remove_slash(const fs::path& path) {
  fs::path target = path.has_filename() ? path : path.parent_path();
  const std::string name = target.filename().string();
  if (name.empty() || name == "." || name == "..")
    throw Error(ErrorKind::bad_argument, "the output needs a name of its own", path.string());
  return target;
}

[[noreturn]] void refuse(std::string_view problem, const fs::path& target) {
  throw Error(ErrorKind::bad_argument, std::string(problem), target.string());
}

void require_no_input_in(const fs::path& target, const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    std::error_code ignored;
    for (fs::path at = fs::weakly_canonical(input, ignored); !at.empty() && at != at.parent_path();
         at = at.parent_path()) {
      if (fs::equivalent(at, target, ignored))
        refuse("the input is in this directory; it cannot be the output too", target);
    }
  }
}

struct ReplacedDirectory {
  mode_t mode;
  std::vector<std::string> names;
};

// Appends "name/file" for each file of a folder. Returns false if the folder is empty or holds anything but files.
bool add_files_of_folder(const fs::path& directory, const std::string& name, std::vector<std::string>& names) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(directory / name, ignored))) return false;
  const std::vector<DirectoryEntry> entries = list_directory(directory / name);
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_file) return false;
    names.push_back(fmt::format("{}/{}", name, entry.name));
  }
  return !entries.empty();
}

// Returns the directory to replace; std::nullopt if there is none. Throws bad_argument if it must not be replaced.
std::optional<ReplacedDirectory> find_replaced_directory(const fs::path& target, bool overwrite,
                                                         const DirectoryOutput::RefusalToReplace& refusal_to_replace,
                                                         const std::vector<fs::path>& inputs) {
  struct stat status {};
  if (::lstat(target.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_system_error("write", target.string());
    return std::nullopt;
  }
  if (S_ISLNK(status.st_mode)) refuse("the output is a symbolic link; a directory is needed", target);
  if (!S_ISDIR(status.st_mode)) refuse("the output is a file; this format is a directory", target);
  require_no_input_in(target, inputs);
  ReplacedDirectory found{status.st_mode & 07777, {}};
  for (DirectoryEntry& entry : list_directory(target)) {
    if (entry.is_file) {
      found.names.push_back(std::move(entry.name));
    } else if (!add_files_of_folder(target, entry.name, found.names)) {
      refuse(fmt::format("the directory holds {}, which is not a file: it is not replaced", entry.name), target);
    }
  }
  std::ranges::sort(found.names);
  if (const std::string why = found.names.empty() ? "" : refusal_to_replace(found.names); !why.empty())
    refuse(why + ": it is not replaced", target);
  if (!overwrite)
    throw Error(ErrorKind::bad_argument, "the output exists already", target.string())
        .with({.kind = Remedy::Kind::overwrite});
  return found;
}

std::string describe_replaced(const fs::path& target, const std::optional<ReplacedDirectory>& found) {
  if (!found) return {};
  if (found->names.empty()) return fmt::format("the empty directory {} is replaced", target.string());
  constexpr std::size_t kNamed = 4;
  return fmt::format("the directory {} is replaced, and its {} deleted: {}", target.string(),
                     format_count(found->names.size(), "file"), list_names(found->names, kNamed));
}

FileDescriptor lock_directory(const fs::path& directory) {
  FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

}  // namespace

std::string DirectoryOutput::check_replaceable(const fs::path& path, bool overwrite,
                                               const RefusalToReplace& refusal_to_replace,
                                               const std::vector<fs::path>& inputs) {
  const fs::path target = remove_slash(path);
  return describe_replaced(target, find_replaced_directory(target, overwrite, refusal_to_replace, inputs));
}

DirectoryOutput::DirectoryOutput(const fs::path& path, bool overwrite, RefusalToReplace refusal_to_replace,
                                 std::vector<fs::path> inputs)
    : target_(remove_slash(path)),
      overwrite_(overwrite),
      refusal_to_replace_(std::move(refusal_to_replace)),
      inputs_(std::move(inputs)) {
  const auto found = find_replaced_directory(target_, overwrite_, refusal_to_replace_, inputs_);
  replaces_ = describe_replaced(target_, found);
  if (found) mode_ = found->mode;
}

DirectoryOutput::~DirectoryOutput() {
  if (!hidden_.empty()) remove_directory(hidden_);
}

// Creates the hidden directory. Saves to a target use the same hidden name, unless two run at once.
void DirectoryOutput::create_hidden_directory() {
  fs::path name = make_finished_name(target_);
  for (int attempt = 0;; ++attempt) {
    if (::mkdir(name.c_str(), 0777) == 0) break;
    if (errno != EEXIST || attempt == kNameAttempts)
      throw_system_error("create a directory in this directory", find_parent_directory(target_).string());
    if (attempt == 0 && lock_directory(name)) {
      remove_directory(name);  // a killed process has left it
    } else {
      name = make_temporary_name(target_);
    }
  }
  hidden_ = std::move(name);
  lock_ = lock_directory(hidden_);
}

Sink& DirectoryOutput::main() { throw Error(ErrorKind::internal, "a directory has no main file", target_.string()); }
Sink& DirectoryOutput::open_main(const std::string&) { return main(); }

Sink& DirectoryOutput::open_sibling(const std::string& name) {
  names_.push_back(name);
  return files_.emplace_back(target_ / name, find_parent_directory(target_));
}

std::uint64_t DirectoryOutput::bytes() const {
  std::uint64_t sum = 0;
  for (const AtomicFile& file : files_) sum += file.position();
  return sum;
}

std::uint64_t DirectoryOutput::padding() const {
  std::uint64_t sum = 0;
  for (const AtomicFile& file : files_) sum += file.padding();
  return sum;
}

// Exchanges the old directory and the new one. commit() then removes the old one.
void DirectoryOutput::replace() {
  // Checks the directory again, since it may have changed.
  find_replaced_directory(target_, overwrite_, refusal_to_replace_, inputs_);
  if (::renameat2(AT_FDCWD, hidden_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL) throw_system_error("put the finished directory into its place", target_.string());
  // On file systems without RENAME_EXCHANGE, there is no directory for an instant.
  fs::path old = make_temporary_name(target_);
  if (::rename(target_.c_str(), old.c_str()) != 0) throw_system_error("rename the old directory", target_.string());
  if (::rename(hidden_.c_str(), target_.c_str()) != 0) {
    const int code = errno;
    ::rename(old.c_str(), target_.c_str());
    throw_system_error("put the finished directory into its place", target_.string(), code);
  }
  hidden_ = std::move(old);
}

void DirectoryOutput::commit() {
  for (AtomicFile& file : files_) file.flush();
  create_hidden_directory();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const fs::path path = hidden_ / names_[i];
    if (names_[i].find('/') != std::string::npos && ::mkdir(path.parent_path().c_str(), 0777) != 0 && errno != EEXIST)
      throw_system_error("create a directory in this directory", hidden_.string());
    files_[i].commit_as(path);
  }
  const fs::path parent = find_parent_directory(target_);
  if (mode_) ::chmod(hidden_.c_str(), *mode_);
  int result = ::renameat2(AT_FDCWD, hidden_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE);
  if (result != 0 && errno == EINVAL)
    result = ::rename(hidden_.c_str(), target_.c_str());  // replaces an empty directory at most
  if (result == 0) {
    hidden_.clear();
  } else if (errno == EEXIST || errno == ENOTEMPTY) {
    replace();
    const fs::path old = std::exchange(hidden_, {});
    sync_directory(parent);
    remove_directory(old);
  } else {
    throw_system_error("rename the finished directory", target_.string());
  }
  sync_directory(parent);  // does not fail, since the directory is in place already
}

}  // namespace poise
