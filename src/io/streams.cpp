#include "io/streams.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/file_descriptor.hpp"

namespace poise {
namespace {

constexpr std::size_t kPiece = 1 << 20;

// Returns the regular file that a stream reads from the file's beginning, since such a file needs no copy. Returns null
// for other streams.
SourcePtr open_whole_file(int descriptor, const std::string& name) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || ::lseek(descriptor, 0, SEEK_CUR) != 0)
    return nullptr;
  const FileDescriptor file(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return file ? make_file_source(file, name, static_cast<std::uint64_t>(status.st_size)) : nullptr;
}

// Creates a file for the bytes of a stream, which errors call by `name`.
AtomicFile make_temporary_file(const std::string& name) {
  return {name, find_temporary_directory(), "set TMPDIR to another directory"};
}

}  // namespace

std::filesystem::path find_temporary_directory() {
  const char* const given = std::getenv("TMPDIR");
  const std::filesystem::path directory = given == nullptr || *given == '\0' ? "/tmp" : given;
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(directory, error);
  if (!is_directory && !error) error = std::make_error_code(std::errc::not_a_directory);
  if (!error && ::access(directory.c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (!error) return directory;
  throw Error(
      ErrorKind::io,
      fmt::format("cannot create temporary files in this directory: {}; set TMPDIR to another one", error.message()),
      directory.string());
}

SourcePtr read_stream(int descriptor, const std::string& name) {
  if (SourcePtr whole = open_whole_file(descriptor, name)) return whole;
  AtomicFile file = make_temporary_file(name);
  std::vector<std::byte> piece(kPiece);
  while (true) {
    const ssize_t count = ::read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("read", name);
    if (count == 0) return file.read_back();
    file.write(std::span(piece).first(static_cast<std::size_t>(count)));
  }
}

StreamOutput::StreamOutput(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), file_(make_temporary_file(name_)) {}

Sink& StreamOutput::open_sibling(const std::string& name) {
  throw Error(
      ErrorKind::bad_argument,
      fmt::format("a stream holds only one file, and this output has a second one, {}: name an output file", name),
      name_);
}

void StreamOutput::commit() {
  const SourcePtr whole = file_.read_back();
  std::vector<std::byte> piece(kPiece);
  for (std::uint64_t offset = 0; offset < whole->size();) {
    const auto wanted =
        std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), whole->size() - offset)));
    whole->read(offset, wanted);
    offset += wanted.size();
    for (std::span<const std::byte> left = wanted; !left.empty();) {
      const ssize_t count = ::write(descriptor_, left.data(), left.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_system_error("write", name_);
      left = left.subspan(static_cast<std::size_t>(count));
    }
  }
}

}  // namespace poise
