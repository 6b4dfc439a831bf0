#include "cli/line_reader.hpp"

#include <unistd.h>

#include <clocale>
#include <cstdlib>

#include <editline/readline.h>
#include <langinfo.h>

namespace poise::cli {
namespace {

// libedit drops characters that the locale does not have.
void use_utf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::string_view(::nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

LineReader::LineReader() : is_terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
  if (!is_terminal_) return;
  use_utf8();
  rl_initialize();
  rl_bind_key('\t', rl_insert);  // a tab is text here, not the name of a file
  using_history();
  stifle_history(1000);
}

std::optional<std::string> LineReader::line(const std::string& prompt) {
  std::string text;
  if (!is_terminal_) {
    if (!input_.line(text)) return std::nullopt;
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }
  char* const typed = readline(prompt.c_str());
  if (typed == nullptr) return std::nullopt;
  text = typed;
  std::free(typed);
  return text;
}

void LineReader::remember(const std::string& text) {
  if (is_terminal_ && !text.empty()) add_history(text.c_str());
}

}  // namespace poise::cli
