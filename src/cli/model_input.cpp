#include "cli/model_input.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include <poise/error.hpp>

#include "io/file_descriptor.hpp"
#include "io/streams.hpp"
#include "io/system_error.hpp"

namespace poise::cli {
namespace {

bool is_pipe(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

SourcePtr read_standard_input() {
  static bool is_read = false;
  if (std::exchange(is_read, true))
    throw Error(ErrorKind::bad_argument, "standard input can be read only once: \"-\" stands for one model");
  if (::isatty(STDIN_FILENO) != 0)
    throw Error(ErrorKind::bad_argument, "\"-\" reads a model from standard input, which is a terminal");
  return read_stream(STDIN_FILENO, "standard input");
}

SourcePtr read_pipe(const std::string& path) {
  const FileDescriptor pipe(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!pipe) throw_system_error("open", path);
  return read_stream(pipe.get(), path);
}

}  // namespace

bool is_stream(const std::string& path) { return path == "-" || is_pipe(path); }

Model open_model(const std::string& path, const ReadOptions& options) {
  if (path == "-") return open(read_standard_input(), options);
  return is_pipe(path) ? open(read_pipe(path), options) : open(path, options);
}

}  // namespace poise::cli
