#include "cli/history_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <poise/error.hpp>
#include <poise/value.hpp>

namespace poise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKept = 1000;                   // lines
constexpr std::size_t kMostLines = 2 * kKept;         // before the file is shortened
constexpr ::off_t kMostBytes = ::off_t{4} << 20;      // that are read, from the end
constexpr ::mode_t kPrivateFile = S_IRUSR | S_IWUSR;  // 0600
constexpr ::mode_t kPrivateFolder = S_IRWXU;          // 0700

// The XDG base directory specification: a relative path is ignored.
fs::path state_folder() {
  const auto absolute = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? fs::path(value) : fs::path();
  };
  const fs::path state = absolute("XDG_STATE_HOME");
  if (!state.empty()) return state / "poise";
  const fs::path home = absolute("HOME");
  return home.empty() ? fs::path() : home / ".local" / "state" / "poise";
}

void make_private_folders(const fs::path& folder) {
  fs::path made;
  for (const fs::path& part : folder) {
    made /= part;
    ::mkdir(made.c_str(), kPrivateFolder);  // one that exists stays as it is
  }
}

// Keeps a regular file of this user, private from now on.
FileDescriptor open_private(const std::string& path, int flags) {
  FileDescriptor fd(::open(path.c_str(), flags | O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK, kPrivateFile));
  struct stat status {};
  const bool is_ours = fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  if (!is_ours || ::fchmod(fd.get(), kPrivateFile) != 0) fd.reset();
  return fd;
}

std::string to_line(const std::string& text) { return to_json(Value(text)) + "\n"; }

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string read_end(int fd) {
  const ::off_t size = ::lseek(fd, 0, SEEK_END);
  const ::off_t begin = std::max<::off_t>(0, size - kMostBytes);
  if (size <= 0) return {};
  std::string bytes(static_cast<std::size_t>(size - begin), '\0');
  const ::ssize_t got = ::pread(fd, bytes.data(), bytes.size(), begin);
  bytes.resize(static_cast<std::size_t>(std::max<::ssize_t>(0, got)));
  if (begin > 0) bytes.erase(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);  // the rest of a line
  return bytes;
}

}  // namespace

HistoryFile::HistoryFile() {
  const fs::path folder = state_folder();
  if (folder.empty()) return;
  make_private_folders(folder);
  path_ = (folder / "chat_history").string();
  fd_ = open_private(path_, O_CREAT);
}

std::vector<std::string> HistoryFile::read() {
  std::vector<std::string> texts;
  if (!fd_) return texts;
  const std::string bytes = read_end(fd_.get());
  std::size_t lines = 0;
  for (std::string_view rest = bytes; !rest.empty(); ++lines) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    try {
      Value value = parse_json(rest.substr(0, end), path_);
      if (value.get_if<std::string>() != nullptr) texts.push_back(std::move(value).take<std::string>());
    } catch (const Error&) {  // a line that another program wrote, or that a full disk cut
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  texts.erase(texts.begin(), texts.end() - static_cast<std::ptrdiff_t>(std::min(texts.size(), kKept)));
  if (lines > kMostLines) shorten(texts);
  return texts;
}

void HistoryFile::append(const std::string& text) {
  if (fd_ && !text.empty()) write_all(fd_.get(), to_line(text));
}

// The new file takes the place of the old one when it is whole.
void HistoryFile::shorten(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) bytes += to_line(text);
  std::string temporary = path_ + ".XXXXXX";
  const FileDescriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));  // with mode 0600
  if (!fd) return;
  if (!write_all(fd.get(), bytes) || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return;
  }
  fd_ = open_private(path_, 0);
}

}  // namespace poise::cli
