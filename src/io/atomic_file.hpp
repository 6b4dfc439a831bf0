// AtomicFile: a file that appears whole or not at all.
//
// Bytes go to a temporary file beside the target, with a name nobody can guess. commit() makes them durable and renames.
// A crash, a full disk or an exception before that leaves the old file or none; the destructor removes the temporary one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/file_descriptor.hpp"
#include "io/sink.hpp"

namespace poise {

class AtomicFile final : public Sink {
 public:
  // Throws bad_argument when the target exists and `overwrite` is false, or is not a regular file; not_found or io when
  // its directory cannot be written.
  AtomicFile(std::filesystem::path target, bool overwrite);
  ~AtomicFile() override;

  // Hands buffered bytes to the system and waits until they are on the disk. Throws io.
  void flush();
  // flush() and rename. Without `overwrite` a target that has appeared meanwhile is kept, and this throws.
  void commit();
  // Takes back a commit() that put the file where none was; one that replaced another file stays.
  void withdraw();

 protected:
  void do_write(std::span<const std::byte> bytes) override;
  void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) override;

 private:
  void write_through(std::span<const std::byte> bytes);
  void empty_buffer();
  // Lets the disk begin with what has been written, so that flush() need not wait for all of it.
  void start_writeback(std::uint64_t written);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  bool overwrite_;
  bool flushed_ = false;
  bool committed_ = false;
  bool is_new_ = false;
  std::uint64_t handed_over_ = 0;  // bytes from the start that the disk was told to begin with
  std::uint64_t unwritten_ = 0;    // bytes behind them
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
};

}  // namespace poise
