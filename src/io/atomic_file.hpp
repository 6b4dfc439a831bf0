// AtomicFile: a file that appears whole or not at all.
//
// Bytes go to a file without a name in the target's directory; commit() makes them durable and gives them the name. A
// crash, a killed process, a full disk or an exception leaves the old file, the new one or none. A file that replaces
// another has a hidden name for an instant, when it is complete; should the process be killed then, the next save to
// that target removes it. Where a file system has no files without names, they have a hidden one that is hard to guess,
// which the destructor removes.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/file_descriptor.hpp"
#include "io/sink.hpp"

namespace poise {

// Throws bad_argument and io as making an AtomicFile would. Makes nothing.
void require_replaceable(const std::filesystem::path& target, bool overwrite);

class AtomicFile final : public ReadableSink {
 public:
  // Throws bad_argument when the target exists and `overwrite` is false, or is not a regular file; not_found or io when
  // its directory cannot be written.
  AtomicFile(std::filesystem::path target, bool overwrite);
  // A new file whose directory is not there yet: until commit_as() it is in `directory`, on the same file system.
  // Errors name the target.
  AtomicFile(std::filesystem::path target, std::filesystem::path directory);
  ~AtomicFile() override;

  SourcePtr written() override;
  const std::filesystem::path& target() const { return target_; }
  // Hands buffered bytes to the system and waits until they are on the disk. Throws io.
  void flush();
  // flush(), and the name. Without `overwrite` a target that has appeared meanwhile is kept, and this throws.
  void commit();
  // The same under another name, in a directory that is there now.
  void commit_as(std::filesystem::path target);
  // Takes back a commit() that put the file where none was; one that replaced another file stays.
  void withdraw();

 protected:
  void do_write(std::span<const std::byte> bytes) override;
  void do_pad(std::uint64_t count) override;
  void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) override;

 private:
  void open_unnamed(mode_t mode);
  void open_named(mode_t mode);
  // Gives the file the target's name if it is free; false when it is taken.
  bool appear();
  // Replaces the file of that name.
  void replace();
  void write_through(std::span<const std::byte> bytes);
  void empty_buffer();
  // Gives a file that ends in a hole its length.
  void end_hole();
  // Lets the disk begin with what has been written, so that flush() need not wait for all of it.
  void start_writeback(std::uint64_t written);

  std::filesystem::path target_;
  std::filesystem::path directory_;  // that it is made in
  std::filesystem::path temporary_;  // empty while the file has no name
  bool overwrite_;
  bool flushed_ = false;
  bool ends_in_hole_ = false;
  bool committed_ = false;
  bool is_new_ = false;
  std::uint64_t handed_over_ = 0;  // bytes from the start that the disk was told to begin with
  std::uint64_t unwritten_ = 0;    // bytes after them
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
};

}  // namespace poise
