#include "cli/standard_input.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/remote.hpp>

#include "cli/cluster.hpp"
#include "io/file_descriptor.hpp"

namespace poise::cli {
namespace {

constexpr std::size_t kPiece = 1 << 16;      // the capacity of a pipe
constexpr std::size_t kMostInput = 1 << 28;  // bounds the memory for an endless input

}  // namespace

void claim_standard_input() {
  static bool is_claimed = false;
  if (std::exchange(is_claimed, true))
    throw Error(ErrorKind::bad_argument, "standard input can be read only once: \"-\" stands for one text or model");
}

File open_file(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode));
  if (!file && is_url(path))
    throw Error(ErrorKind::bad_argument, "texts are not read from servers; download it first", path);
  if (!file) throw_system_error("open", path);
  return file;
}

std::string read_text_file(const std::string& path) {
  if (path == "-") return TextInput().read_all();
  return share_text([&] {
    const File file = open_file(path, "rb");
    return TextInput(file.get(), path).read_all();
  });
}

std::string read_text_beginning(const std::string& path, std::size_t bytes) {
  if (path == "-") return TextInput().read_beginning(bytes);
  return share_text([&] {
    const File file = open_file(path, "rb");
    return TextInput(file.get(), path).read_beginning(bytes);
  });
}

std::string get_input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string read_prompt_file(const std::string& path) {
  std::string text = read_text_file(path);
  if (!text.ends_with('\n')) return text;
  text.pop_back();
  if (text.ends_with('\r')) text.pop_back();  // files from Windows have \r before each \n
  return text;
}

bool has_piped_input() {
  struct stat status {};
  const bool is_open = ::fstat(STDIN_FILENO, &status) == 0;
  const bool is_piped = S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
  return share_number(is_open && is_piped ? 1 : 0) != 0;
}

std::string TextInput::read_all() {
  while (read_more()) {
  }
  return std::move(buffer_);
}

std::string TextInput::read_beginning(std::size_t bytes) {
  while (buffer_.size() < bytes && read_more()) {
  }
  return std::move(buffer_);
}

bool TextInput::read_line(std::string& line) {
  std::size_t end = buffer_.find('\n', begin_);
  while (end == std::string::npos) {
    const std::size_t looked = buffer_.size() - begin_;
    if (!read_more()) break;
    end = buffer_.find('\n', begin_ + looked);
  }
  if (begin_ == buffer_.size()) return false;
  line = buffer_.substr(begin_, end == std::string::npos ? end : end - begin_);
  begin_ = end == std::string::npos ? buffer_.size() : end + 1;
  return true;
}

bool TextInput::read_more() {
  if (file_ == stdin && !has_begun_) claim_standard_input();
  has_begun_ = true;
  buffer_.erase(0, std::exchange(begin_, 0));
  const std::size_t before = buffer_.size();
  if (before > kMostInput)
    throw Error(ErrorKind::unsupported, fmt::format("the text is longer than {} bytes, the limit", kMostInput), name_);
  buffer_.resize(before + kPiece);
  const bool is_shared = file_ == stdin;
  std::size_t count = is_shared && get_cluster().rank() != 0 ? 0 : read_piece(buffer_.data() + before);
  if (is_shared) {
    count = share_number(count);
    get_cluster().broadcast(std::as_writable_bytes(std::span(buffer_).subspan(before, count)), 0);
  }
  buffer_.resize(before + count);
  return count > 0;
}

std::size_t TextInput::read_piece(char* to) const {
  // read() returns what has arrived; fread() would wait for a whole piece.
  ::ssize_t read = 0;
  do {
    read = ::read(::fileno(file_), to, kPiece);
  } while (read < 0 && errno == EINTR);
  if (read < 0) throw_system_error("read", name_);
  return static_cast<std::size_t>(read);
}

}  // namespace poise::cli
