#include "io/atomic_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <poise/error.hpp>

namespace poise {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;
// Pieces of this size or more bypass the buffer, because copying them takes longer than the system call.
constexpr std::size_t kUnbufferedBytes = 128 << 10;
constexpr std::uint64_t kLeastHoleBytes = 4096;  // holes are made of whole blocks
constexpr int kAttempts = 16;
constexpr std::uint64_t kWritebackBytes = 32 << 20;

// Returns true if the file system copies by sharing extents, or copies on its server. On other file systems,
// copy_file_range() copies page by page, which is slower than reading and writing.
bool shares_extents(const FileDescriptor& fd) {
  constexpr std::array<std::uint32_t, 6> kSharing = {BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC,  0xca451a4e /* bcachefs */,
                                                     NFS_SUPER_MAGIC,   CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC};
  struct statfs status {};
  return ::fstatfs(fd.get(), &status) == 0 &&
         std::ranges::find(kSharing, static_cast<std::uint32_t>(status.f_type)) != kSharing.end();
}

[[noreturn]] void refuse_existing(const std::filesystem::path& target) {
  throw Error(ErrorKind::bad_argument, "the output exists already", target.string())
      .with({.kind = Remedy::Kind::overwrite});
}

// Returns true for links of the system, such as /dev/stdout.
bool is_system_link(const std::filesystem::path& link) {
  std::error_code ignored;
  const std::filesystem::path directory = std::filesystem::weakly_canonical(find_parent_directory(link), ignored);
  return directory == "/dev" || directory == "/dev/fd" || directory.string().starts_with("/proc/");
}

// Throws bad_argument if a file cannot replace the existing entry.
void require_file(const struct stat& status, const std::filesystem::path& target) {
  if (S_ISDIR(status.st_mode)) throw Error(ErrorKind::bad_argument, "the output is a directory", target.string());
  if (S_ISLNK(status.st_mode)) {  // the output will replace the link itself
    if (is_system_link(target))
      throw Error(ErrorKind::bad_argument, "the output is a link of the system; a file is needed", target.string());
    struct stat there {};
    if (::stat(target.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
      throw Error(ErrorKind::bad_argument, "the output is a link to something that is not a regular file",
                  target.string());
  } else if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::bad_argument, "the output is not a regular file", target.string());
  }
}

// Returns the state of the regular file that the output replaces, whose mode and owner stay. Returns std::nullopt for a
// new file, and for a link, which is replaced itself. Throws bad_argument if the output must not be written.
std::optional<struct stat> find_replaced_file(const std::filesystem::path& target, bool overwrite) {
  if (!target.has_filename()) throw Error(ErrorKind::bad_argument, "the output has no file name", target.string());
  struct stat status {};
  if (::lstat(target.c_str(), &status) != 0) {
    if (errno != ENOENT) throw_system_error("write", target.string());
    return std::nullopt;
  }
  require_file(status, target);
  if (!overwrite) refuse_existing(target);
  return S_ISREG(status.st_mode) ? std::optional(status) : std::nullopt;
}

// Gives a new file the owner, group and mode of the file that it replaces, as far as the process may.
void copy_owner_and_mode(const FileDescriptor& fd, const struct stat& replaced) {
  constexpr mode_t kRunsAsOwner = S_ISUID | S_ISGID;
  mode_t mode = replaced.st_mode & 07777;
  if (::fchown(fd.get(), replaced.st_uid, replaced.st_gid) != 0) {
    const bool has_group = ::fchown(fd.get(), static_cast<uid_t>(-1), replaced.st_gid) == 0;
    struct stat made {};
    const bool is_same = has_group && ::fstat(fd.get(), &made) == 0 && made.st_uid == replaced.st_uid;
    if (!is_same) mode &= ~kRunsAsOwner;  // the new file has another owner or group
  }
  ::fchmod(fd.get(), mode);  // the umask, and a change of owner, may have cleared bits
}

std::string make_link_path(const FileDescriptor& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

// Gives an unnamed file a name. Returns false if the name is taken.
bool link_unless_taken(const FileDescriptor& fd, const std::filesystem::path& to) {
  if (::linkat(AT_FDCWD, make_link_path(fd).c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno != EEXIST) throw_system_error("name the finished file", to.string());
  return false;
}

// Renames a file. Returns false if the new name is taken.
bool rename_unless_taken(const std::filesystem::path& from, const std::filesystem::path& to) {
  int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  if (result != 0 && errno == EINVAL) {  // the file system lacks RENAME_NOREPLACE; link() refuses taken names, too
    result = ::link(from.c_str(), to.c_str());
    if (result == 0) ::unlink(from.c_str());
  }
  if (result != 0 && errno != EEXIST) throw_system_error("rename the finished file", to.string());
  return result == 0;
}

// Returns true if the path names the open file.
bool is_file(const FileDescriptor& fd, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

// Removes a finished file that an interrupted save has left. A running save holds a lock on its file.
void remove_leftover(const std::filesystem::path& finished) {
  const FileDescriptor fd(::open(finished.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(finished.c_str());
}

// Replaces the target with a finished file that has no name. rename() needs a name, so the file is called
// make_finished_name() for an instant. Returns false if no hidden name is free.
bool link_and_replace(const FileDescriptor& fd, const std::filesystem::path& target) {
  std::filesystem::path hidden = make_finished_name(target);
  ::flock(fd.get(), LOCK_EX | LOCK_NB);  // held until the file is closed
  remove_leftover(hidden);
  if (!link_unless_taken(fd, hidden)) {  // another save to the same target is running
    hidden = make_temporary_name(target);
    if (!link_unless_taken(fd, hidden)) return false;
  }
  if (::rename(hidden.c_str(), target.c_str()) == 0) return true;
  const int code = errno;
  ::unlink(hidden.c_str());
  throw_system_error("put the finished file into its place", target.string(), code);
}

}  // namespace

void require_replaceable(const std::filesystem::path& target, bool overwrite) {
  find_replaced_file(target, overwrite);
  const std::filesystem::path directory = find_parent_directory(target);
  if (::access(directory.c_str(), W_OK | X_OK) != 0)
    throw_system_error("create a file in this directory", directory.string(), errno);
}

AtomicFile::AtomicFile(std::filesystem::path target, bool overwrite)
    : target_(std::move(target)), directory_(find_parent_directory(target_)), overwrite_(overwrite) {
  const auto replaced = find_replaced_file(target_, overwrite_);
  open(replaced ? replaced->st_mode & 0777 : 0666);
  if (replaced) copy_owner_and_mode(fd_, *replaced);
}

AtomicFile::AtomicFile(std::filesystem::path target, std::filesystem::path directory, std::string remedy)
    : target_(std::move(target)), directory_(std::move(directory)), overwrite_(false), remedy_(std::move(remedy)) {
  open(0666);
}

void AtomicFile::open(mode_t mode) {
  fd_ = FileDescriptor(::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (fd_ && ::access(make_link_path(fd_).c_str(), F_OK) != 0) fd_.reset();  // giving it a name needs /proc
  if (!fd_) open_named(mode);
  buffer_.reserve(kBufferBytes);
}

void AtomicFile::open_named(mode_t mode) {
  for (int attempt = 0; !fd_; ++attempt) {
    temporary_ = make_temporary_name(directory_ / target_.filename());
    fd_ = FileDescriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd_ && (errno != EEXIST || attempt == kAttempts)) {
      const int code = errno;
      temporary_.clear();
      throw_system_error("create a file in this directory", directory_.string(), code);
    }
  }
}

AtomicFile::~AtomicFile() {
  if (!committed_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail_to_write(int code) const {
  if (remedy_.empty()) throw_system_error("write", target_.string(), code);
  throw Error(ErrorKind::io,
              fmt::format("cannot write a temporary file in {}: {}; {}", directory_.string(),
                          std::generic_category().message(code), remedy_),
              target_.string());
}

void AtomicFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to_write(errno);
    ends_in_hole_ = false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    start_writeback(static_cast<std::uint64_t>(written));
  }
}

void AtomicFile::start_writeback(std::uint64_t written) {
  unwritten_ += written;
  if (unwritten_ < kWritebackBytes) return;
  // This is only a hint to the system; flush() waits for the bytes with fsync().
  ::sync_file_range(fd_.get(), static_cast<off64_t>(handed_over_), static_cast<off64_t>(unwritten_),
                    SYNC_FILE_RANGE_WRITE);
  handed_over_ += unwritten_;
  unwritten_ = 0;
}

void AtomicFile::flush_buffer() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::do_write(std::span<const std::byte> bytes) {
  flushed_ = false;
  if (bytes.size() >= kUnbufferedBytes || bytes.size() > kBufferBytes - buffer_.size()) flush_buffer();
  if (bytes.size() >= kUnbufferedBytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

// Makes large padding a hole, which saves the writing of its blocks.
void AtomicFile::do_pad(std::uint64_t count) {
  if (count < kLeastHoleBytes) return Sink::do_pad(count);
  flush_buffer();
  flushed_ = false;
  if (count > INT64_MAX || ::lseek(fd_.get(), static_cast<off64_t>(count), SEEK_CUR) < 0) {
    // For a position that is too large, the system reports only an invalid argument.
    fail_to_write(count > INT64_MAX || errno == EINVAL ? EFBIG : errno);
  }
  ends_in_hole_ = true;
  start_writeback(count);
}

void AtomicFile::end_hole() {
  if (ends_in_hole_ && ::ftruncate(fd_.get(), static_cast<off64_t>(position())) != 0) fail_to_write(errno);
  ends_in_hole_ = false;
}

void AtomicFile::do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) {
  if (source.descriptor() < 0 || length < kBufferBytes || !shares_extents(fd_))
    return Sink::do_copy(source, offset, length);
  flush_buffer();
  flushed_ = false;
  auto from = static_cast<off64_t>(offset);
  while (length > 0) {
    const ssize_t copied = ::copy_file_range(source.descriptor(), &from, fd_.get(), nullptr, length, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSPC || errno == EIO || errno == EDQUOT || errno == EFBIG)) fail_to_write(errno);
    if (copied <= 0) break;  // unsupported, or the source has shrunk: Sink::do_copy() copies the rest or throws
    length -= static_cast<std::uint64_t>(copied);
    ends_in_hole_ = false;
    start_writeback(static_cast<std::uint64_t>(copied));
  }
  if (length > 0) Sink::do_copy(source, static_cast<std::uint64_t>(from), length);
}

SourcePtr AtomicFile::read_back() {
  flush_buffer();
  end_hole();
  return make_file_source(fd_, target_.string(), position());
}

void AtomicFile::flush() {
  if (flushed_) return;
  flush_buffer();
  end_hole();
  if (::fsync(fd_.get()) != 0) fail_to_write(errno);
  flushed_ = true;
}

std::filesystem::path AtomicFile::add_hidden_name() {
  // Until commit_as(), the files of several DirectoryOutputs may be in one directory, so a hidden name contains the
  // name of the file's own directory.
  std::string name = target_.filename().string();
  if (directory_ != find_parent_directory(target_))
    name = target_.parent_path().filename().string() + "." + std::move(name);
  const auto claim = [this](const std::filesystem::path& path) {
    return temporary_.empty() ? link_unless_taken(fd_, path) : rename_unless_taken(temporary_, path);
  };
  std::filesystem::path path = make_finished_name(directory_ / name);
  ::flock(fd_.get(), LOCK_EX | LOCK_NB);  // held until the file is closed
  remove_leftover(path);
  if (claim(path)) {
    temporary_ = std::move(path);
  } else if (temporary_.empty()) {  // another save to the same target is running
    path = make_temporary_name(directory_ / name);
    if (!claim(path)) throw Error(ErrorKind::io, "no name is free for the unfinished file", directory_.string());
    temporary_ = std::move(path);
  }
  return temporary_;
}

bool AtomicFile::claim_name() {
  return temporary_.empty() ? link_unless_taken(fd_, target_) : rename_unless_taken(temporary_, target_);
}

void AtomicFile::replace() {
  if (!temporary_.empty()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      throw_system_error("rename the finished file", target_.string());
    return;
  }
  for (int attempt = 0; !link_and_replace(fd_, target_); ++attempt) {
    if (attempt == kAttempts)
      throw Error(ErrorKind::io, "no name is free for the finished file", find_parent_directory(target_).string());
  }
}

void AtomicFile::commit() {
  flush();
  const std::filesystem::path left = make_finished_name(target_);
  const std::filesystem::path parent = find_parent_directory(target_);
  is_new_ = claim_name();
  if (!is_new_ && !overwrite_) refuse_existing(target_);
  if (!is_new_) replace();
  committed_ = true;  // the rest neither fails nor allocates
  remove_leftover(left);
  sync_directory(parent);  // the data are on the disk already
}

void AtomicFile::commit_as(std::filesystem::path target) {
  target_ = std::move(target);
  commit();
}

void AtomicFile::commit_undoably() {
  flush();
  if (temporary_.empty()) add_hidden_name();
  find_replaced_file(target_, overwrite_);  // the target may have changed
  is_new_ = claim_name();
  if (!is_new_ && !overwrite_) refuse_existing(target_);
  if (!is_new_) exchange();
  committed_ = true;
}

// Exchanges the target and the file with the hidden name, which is the old file then. Another save to the target does
// not remove the old file, because it is locked.
void AtomicFile::exchange() {
  replaced_ = FileDescriptor(::open(target_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (replaced_) ::flock(replaced_.get(), LOCK_EX | LOCK_NB);
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL) throw_system_error("put the finished file into its place", target_.string());
  // The file system lacks RENAME_EXCHANGE. If it lacks links, too, there is no file for an instant.
  std::filesystem::path old = make_temporary_name(target_);
  if (::link(target_.c_str(), old.c_str()) != 0 && ::rename(target_.c_str(), old.c_str()) != 0)
    throw_system_error("rename the old file", target_.string());
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int code = errno;
    ::rename(old.c_str(), target_.c_str());
    ::unlink(old.c_str());  // rename() keeps both names of one file
    throw_system_error("put the finished file into its place", target_.string(), code);
  }
  temporary_ = std::move(old);
}

void AtomicFile::undo_commit() {
  if (!committed_) return;
  if (is_new_) {
    ::unlink(target_.c_str());
    if (is_file(fd_, temporary_)) ::unlink(temporary_.c_str());
  } else {
    ::rename(temporary_.c_str(), target_.c_str());
  }
}

void AtomicFile::end_commit() {
  // A new file has its hidden name, too, if its removal failed.
  if (!is_new_ || is_file(fd_, temporary_)) ::unlink(temporary_.c_str());
  sync_directory(find_parent_directory(target_));
}

namespace {

constexpr std::size_t kLongestName = 255;

}  // namespace

std::filesystem::path find_parent_directory(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::filesystem::path make_temporary_name(const std::filesystem::path& target) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) throw_system_error("get random bytes", target.string());
  // Cuts a long name, so that the temporary name is not longer than file systems allow.
  const std::string stem = target.filename().string().substr(0, 200);
  return find_parent_directory(target) / fmt::format(".{}.{:016x}.tmp", stem, random);
}

std::filesystem::path make_finished_name(const std::filesystem::path& target) {
  const std::string name = fmt::format(".{}.poise-new", target.filename().string());
  return name.size() <= kLongestName ? find_parent_directory(target) / name : make_temporary_name(target);
}

std::filesystem::path make_undo_name(const std::filesystem::path& target) {
  const std::string name = fmt::format(".{}.poise-undo", target.filename().string());
  if (name.size() <= kLongestName) return find_parent_directory(target) / name;
  throw Error(ErrorKind::unsupported, "the file's name is too long for a hidden file next to it", target.string());
}

}  // namespace poise
