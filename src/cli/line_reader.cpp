#include "cli/line_reader.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <poise/error.hpp>
#include <poise/value.hpp>

#include "cli/cluster.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

// Sets a locale with UTF-8, because libedit drops characters that the locale does not have.
void set_utf8_locale() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::string_view(::nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Binds a key, such as Home or Control with an arrow, to a function that libedit itself does not bind to it.
struct KeyBinding {
  const char* key;
  const char* function;
};
constexpr auto kKeyBindings = std::to_array<KeyBinding>({{"\\e[1~", "ed-move-to-beg"},
                                                         {"\\e[7~", "ed-move-to-beg"},
                                                         {"\\e[H", "ed-move-to-beg"},
                                                         {"\\e[4~", "ed-move-to-end"},
                                                         {"\\e[8~", "ed-move-to-end"},
                                                         {"\\e[F", "ed-move-to-end"},
                                                         {"\\e[3~", "ed-delete-next-char"},
                                                         {"\\e[1;5C", "em-next-word"},
                                                         {"\\e[1;5D", "ed-prev-word"},
                                                         {"^R", "em-inc-search-prev"}});

// Returns the longest beginning that all words have.
std::string find_common_beginning(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto differs = std::ranges::mismatch(common, word).in1;
    common.erase(differs, common.end());
  }
  return common;
}

}  // namespace

void LineReader::CloseEditor::operator()(::editline* editor) const { ::el_end(editor); }
void LineReader::CloseHistory::operator()(struct ::history* lines) const { ::history_end(lines); }

LineReader::LineReader(Completer completer, const std::vector<std::string>& earlier)
    : is_terminal_(get_cluster().size() == 1 && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1),
      completer_(std::move(completer)) {
  if (!is_terminal_) return;
  set_utf8_locale();
  editor_.reset(::el_init("poise", stdin, stdout, stderr));
  history_.reset(::history_init());
  if (!editor_ || !history_) throw std::bad_alloc();
  constexpr int kHistoryLines = 1000;
  ::HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kHistoryLines);
  ::history(history_.get(), &event, H_SETUNIQUE, 1);
  EditLine* const editor = editor_.get();
  ::el_set(editor, EL_CLIENTDATA, this);
  ::el_set(editor, EL_PROMPT, &get_prompt);
  ::el_set(editor, EL_SIGNAL, 1);
  ::el_set(editor, EL_EDITOR, "emacs");
  ::el_set(editor, EL_HIST, ::history, history_.get());
  ::el_wset(editor, EL_ADDFN, L"poise-complete", L"Complete a command", &complete);  // el_set leaks copies of the texts
  ::el_set(editor, EL_BIND, "^I", "poise-complete", nullptr);
  for (const auto& [key, function] : kKeyBindings) ::el_set(editor, EL_BIND, key, function, nullptr);
  ::el_source(editor, nullptr);  // the user's ~/.editrc
  for (const std::string& text : earlier) remember(text);
}

LineReader::~LineReader() = default;

LineReader& LineReader::find_reader(::editline* editor) {
  void* data = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &data);
  return *static_cast<LineReader*>(data);
}

char* LineReader::get_prompt(::editline* editor) { return find_reader(editor).prompt_.data(); }

// Inserts the letters that all candidates share after the typed ones. If they share none, lists the candidates.
unsigned char LineReader::complete(::editline* editor, int) {
  LineReader& reader = find_reader(editor);
  const LineInfo* const info = ::el_line(editor);
  const std::string before(info->buffer, static_cast<std::size_t>(info->cursor - info->buffer));
  const auto words = reader.completer_ ? reader.completer_(before) : std::nullopt;
  if (!words) return ::el_insertstr(editor, "\t") == 0 ? CC_REFRESH : CC_ERROR;
  if (words->empty()) return CC_ERROR;
  const std::size_t typed = before.size() - std::min(before.rfind(' ') + 1, before.size());
  std::string more = find_common_beginning(*words);
  more.erase(0, std::min(typed, more.size()));
  if (words->size() == 1 && !words->front().ends_with('/')) more += ' ';
  if (!more.empty()) return ::el_insertstr(editor, more.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  std::string list = "\n";
  for (const std::string& word : *words) append_printable(list += "  ", word);
  print_now(list + "\n");
  return CC_REDISPLAY;
}

std::optional<std::string> LineReader::read_line(const std::string& prompt) {
  std::string text;
  if (!is_terminal_) {
    if (!input_.read_line(text)) return std::nullopt;
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }
  prompt_ = prompt;
  int size = 0;
  const char* const typed = ::el_gets(editor_.get(), &size);
  if (typed == nullptr || size <= 0) {
    const LineInfo* const info = ::el_line(editor_.get());
    was_empty_ = info->lastchar == info->buffer;
    return std::nullopt;
  }
  text.assign(typed, static_cast<std::size_t>(size));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void LineReader::remember(const std::string& text) {
  ::HistEvent event;
  if (is_terminal_ && !text.empty()) ::history(history_.get(), &event, H_ENTER, text.c_str());
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKept = 1000;                   // the number of lines that remain when the file is shortened
constexpr std::size_t kMostLines = 2 * kKept;         // the file is shortened if it has more lines
constexpr ::off_t kMostBytes = ::off_t{4} << 20;      // read from the end of the file
constexpr ::mode_t kPrivateFile = S_IRUSR | S_IWUSR;  // 0600
constexpr ::mode_t kPrivateFolder = S_IRWXU;          // 0700

// Returns Poise's state folder by the XDG base directory specification, which ignores relative paths. Returns an empty
// path if the environment names no folder.
fs::path find_state_folder() {
  const auto read_absolute_path = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value == '/' ? fs::path(value) : fs::path();
  };
  const fs::path state = read_absolute_path("XDG_STATE_HOME");
  if (!state.empty()) return state / "poise";
  const fs::path home = read_absolute_path("HOME");
  return home.empty() ? fs::path() : home / ".local" / "state" / "poise";
}

void make_private_folders(const fs::path& folder) {
  fs::path made;
  for (const fs::path& part : folder) {
    made /= part;
    ::mkdir(made.c_str(), kPrivateFolder);  // a folder that exists stays as it is
  }
}

// Opens a file and makes it private. Returns no file if it is not a regular file of this user.
FileDescriptor open_private_file(const std::string& path, int flags) {
  FileDescriptor fd(::open(path.c_str(), flags | O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK, kPrivateFile));
  struct stat status {};
  const bool is_ours = fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  if (!is_ours || ::fchmod(fd.get(), kPrivateFile) != 0) fd.reset();
  return fd;
}

std::string make_history_line(const std::string& text) { return to_json(Value(text)) + "\n"; }

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string read_last_bytes(int fd) {
  const ::off_t size = ::lseek(fd, 0, SEEK_END);
  const ::off_t begin = std::max<::off_t>(0, size - kMostBytes);
  if (size <= 0) return {};
  std::string bytes(static_cast<std::size_t>(size - begin), '\0');
  const ::ssize_t got = ::pread(fd, bytes.data(), bytes.size(), begin);
  bytes.resize(static_cast<std::size_t>(std::max<::ssize_t>(0, got)));
  if (begin > 0) bytes.erase(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);  // drops a cut line
  return bytes;
}

}  // namespace

HistoryFile::HistoryFile() {
  const fs::path folder = find_state_folder();
  if (folder.empty()) return;
  make_private_folders(folder);
  path_ = (folder / "chat_history").string();
  fd_ = open_private_file(path_, O_CREAT);
}

std::vector<std::string> HistoryFile::read() {
  std::vector<std::string> texts;
  if (!fd_) return texts;
  const std::string bytes = read_last_bytes(fd_.get());
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
  if (fd_ && !text.empty()) write_all(fd_.get(), make_history_line(text));
}

// Shortens the file. The new file takes the place of the old one when it is whole.
void HistoryFile::shorten(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) bytes += make_history_line(text);
  std::string temporary = path_ + ".XXXXXX";
  const FileDescriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));  // with mode 0600
  if (!fd) return;
  if (!write_all(fd.get(), bytes) || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return;
  }
  fd_ = open_private_file(path_, 0);
}

namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it

}  // namespace

Interrupts::Interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }

bool Interrupts::clear() { return interrupted.exchange(false); }

bool Interrupts::run(const std::function<void(const std::stop_token& stop)>& work) {
  interrupted = false;
  std::stop_source source;
  // A signal handler may not request a stop itself.
  const std::jthread watch([&source](const std::stop_token& ends) {
    while (!ends.stop_requested() && !interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (interrupted) source.request_stop();
  });
  work(source.get_token());
  const bool was_stopped = source.stop_requested();
  interrupted = false;
  return was_stopped;
}

}  // namespace poise::cli
