// A Source is an immutable range of bytes with a name: a mapped file, a file read with pread, memory, or a file on a
// server.
//
//   const poise::SourcePtr source = poise::Source::from_memory(std::move(bytes), "model.alt");
//   const poise::Model model = poise::open(source);
//
// Sources are thread-safe. Everything that refers to a file keeps its Source alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace poise {

// Chooses how files are read. `map` borrows the page cache and copies no bytes, but SIGBUS ends the program if another
// program truncates the file. `read` copies with pread; a truncated file is an Error. A file that the system cannot map
// is read with pread, too: some file systems have no maps, and an address space may have a limit (ulimit -v).
enum class IoMode { map, read };

class Source {
 public:
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Opens a regular file. Throws not_found, io, or bad_argument for a directory, FIFO, socket or device.
  static std::shared_ptr<const Source> open(const std::filesystem::path& path, IoMode mode = IoMode::map);

  // Returns a source that owns `bytes`. Errors show `name` as the path.
  static std::shared_ptr<const Source> from_memory(std::vector<std::byte> bytes, std::string name);

  // Returns the given path, or the name of a memory source.
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }

  // Returns true if bytes() has all bytes, so that they can be borrowed: never for IoMode::read.
  virtual bool mapped() const = 0;
  // Returns all bytes of a mapped source, else an empty span. Valid while the source lives.
  virtual std::span<const std::byte> bytes() const = 0;

  // Copies `out.size()` bytes from `offset`. Throws io; internal when the range is outside [0, size()).
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;

  // Returns the file's descriptor, with which the operating system can copy its bytes; -1 if there is none.
  virtual int descriptor() const { return -1; }

  // Each function gives the operating system a hint that [offset, offset + length) is needed soon, or no longer needed.
  // It never fails.
  virtual void will_need(std::uint64_t offset, std::uint64_t length) const;
  virtual void done_with(std::uint64_t offset, std::uint64_t length) const;

 protected:
  Source(std::string name, std::uint64_t size) : name_(std::move(name)), size_(size) {}

 private:
  std::string name_;
  std::uint64_t size_;
};

using SourcePtr = std::shared_ptr<const Source>;

}  // namespace poise
