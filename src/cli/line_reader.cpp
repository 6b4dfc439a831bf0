#include "cli/line_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>

#include <histedit.h>
#include <langinfo.h>

#include "cli/text.hpp"

namespace poise::cli {
namespace {

// libedit drops characters that the locale does not have.
void use_utf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::string_view(::nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Keys that libedit leaves without a function: Home, End, Delete, and Control with an arrow.
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

// The longest beginning that all words have.
std::string common_beginning(const std::vector<std::string>& words) {
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
    : is_terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1), completer_(std::move(completer)) {
  if (!is_terminal_) return;
  use_utf8();
  editor_.reset(::el_init("poise", stdin, stdout, stderr));
  history_.reset(::history_init());
  if (!editor_ || !history_) throw std::bad_alloc();
  constexpr int kHistoryLines = 1000;
  ::HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kHistoryLines);
  ::history(history_.get(), &event, H_SETUNIQUE, 1);
  EditLine* const editor = editor_.get();
  ::el_set(editor, EL_CLIENTDATA, this);
  ::el_set(editor, EL_PROMPT, &show_prompt);
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

LineReader& LineReader::of(::editline* editor) {
  void* data = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &data);
  return *static_cast<LineReader*>(data);
}

char* LineReader::show_prompt(::editline* editor) { return of(editor).prompt_.data(); }

// Inserts what all candidates have in common. Lists several if that is nothing.
unsigned char LineReader::complete(::editline* editor, int) {
  LineReader& reader = of(editor);
  const LineInfo* const info = ::el_line(editor);
  const std::string before(info->buffer, static_cast<std::size_t>(info->cursor - info->buffer));
  const auto words = reader.completer_ ? reader.completer_(before) : std::nullopt;
  if (!words) return ::el_insertstr(editor, "\t") == 0 ? CC_REFRESH : CC_ERROR;
  if (words->empty()) return CC_ERROR;
  const std::size_t typed = before.size() - std::min(before.rfind(' ') + 1, before.size());
  std::string more = common_beginning(*words);
  more.erase(0, std::min(typed, more.size()));
  if (words->size() == 1 && !words->front().ends_with('/')) more += ' ';
  if (!more.empty()) return ::el_insertstr(editor, more.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  std::string list = "\n";
  for (const std::string& word : *words) append_printable(list += "  ", word);
  print_now(list + "\n");
  return CC_REDISPLAY;
}

std::optional<std::string> LineReader::line(const std::string& prompt) {
  std::string text;
  if (!is_terminal_) {
    if (!input_.line(text)) return std::nullopt;
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

}  // namespace poise::cli
