// An AtomicFile is a file that appears whole or not at all.
//
// It writes to a file without a name in the target's directory; commit() makes it durable and names it. After a crash,
// a killed process, a full disk or an exception, there is the old file, the new one or none. A complete file that
// replaces another has a hidden name for an instant; if the process is killed then, the next save to that target
// removes it. On file systems without unnamed files, the file has a hidden name that is hard to guess; the destructor
// removes it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "io/file_descriptor.hpp"
#include "io/sink.hpp"

namespace poise {

// Throws the errors that AtomicFile(target, overwrite) would throw. Creates nothing.
void require_replaceable(const std::filesystem::path& target, bool overwrite);

class AtomicFile final : public Sink {
 public:
  // Throws bad_argument when the target exists and `overwrite` is false, or is not a regular file; not_found or io when
  // its directory cannot be written.
  AtomicFile(std::filesystem::path target, bool overwrite);
  // Creates a file for a target whose directory does not exist yet. Until commit_as() it is in `directory`, on the same
  // file system. Errors of writing name the target; with a remedy, they also name the directory and end with the
  // remedy.
  AtomicFile(std::filesystem::path target, std::filesystem::path directory, std::string remedy = {});
  ~AtomicFile() override;

  SourcePtr read_back() override;
  Sink* readable_sink() override { return this; }
  const std::filesystem::path& target() const { return target_; }
  int descriptor() const { return fd_.get(); }
  // Gives the file a hidden name until commit(), so that other machines can open it, and returns its path. If the
  // process is killed, the next save to the target that calls this removes the file.
  std::filesystem::path add_hidden_name();
  // Hands buffered bytes to the system and waits until they are on the disk. Throws io.
  void flush();
  // Flushes, then names the file. Without `overwrite`, throws bad_argument if the target has appeared meanwhile, and
  // keeps it.
  void commit();
  // Commits the file under another name, in a directory that exists now.
  void commit_as(std::filesystem::path target);
  // Commits one of several files: commit() in two steps, so that the files before it can be undone if a later one
  // fails. Keeps a replaced file under a hidden name. Then call end_commit(), which removes that file, or
  // undo_commit(), which puts it back; neither fails. undo_commit() does nothing if the commit failed.
  void commit_undoably();
  void end_commit();
  void undo_commit();

 protected:
  void do_write(std::span<const std::byte> bytes) override;
  void do_pad(std::uint64_t count) override;
  void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) override;

 private:
  // Creates the file without a name; with a hidden name, by open_named(), if the system cannot do that.
  void open(mode_t mode);
  void open_named(mode_t mode);
  // Gives the file the target's name; returns false if a file has that name already.
  bool claim_name();
  // Replaces the target with the file.
  void replace();
  void exchange();
  [[noreturn]] void fail_to_write(int code) const;
  void write_through(std::span<const std::byte> bytes);
  void flush_buffer();
  // Extends the file to position() if it ends in a hole, because do_pad() only moves the file's position.
  void end_hole();
  // Starts writing bytes to the disk, so that flush() has less to wait for.
  void start_writeback(std::uint64_t written);

  std::filesystem::path target_;
  std::filesystem::path directory_;  // the directory in which the file is created
  // The hidden name of the file, or after commit_undoably() of the file that it replaced, if there was one. Empty while
  // the file has no name.
  std::filesystem::path temporary_;
  bool overwrite_;
  std::string remedy_;
  bool flushed_ = false;
  bool ends_in_hole_ = false;
  bool committed_ = false;
  bool is_new_ = false;
  std::uint64_t handed_over_ = 0;  // how many bytes from the beginning the disk has begun to write
  std::uint64_t unwritten_ = 0;    // how many bytes have been written after these
  FileDescriptor fd_;
  FileDescriptor replaced_;  // holds the lock on the file that commit_undoably() replaced
  std::vector<std::byte> buffer_;
};

// Returns the path's directory; "." for a plain name.
std::filesystem::path find_parent_directory(const std::filesystem::path& path);

// Returns a hidden name, next to the target, that nobody can guess.
std::filesystem::path make_temporary_name(const std::filesystem::path& target);

// Returns the hidden name of a complete file for that target. It is the same for every save, so that the next save
// removes the file of a killed process. If this name is too long, returns make_temporary_name(target).
std::filesystem::path make_finished_name(const std::filesystem::path& target);

// Returns the name of the undo file (io/in_place.hpp) of a target: the same for every replacement in it. Throws
// unsupported if the name is too long.
std::filesystem::path make_undo_name(const std::filesystem::path& target);

}  // namespace poise
