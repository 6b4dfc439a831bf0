#include "cli/line_reader.hpp"

#include <unistd.h>

#include <cstdlib>

#include <editline/readline.h>

namespace poise::cli {

LineReader::LineReader() : is_terminal_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) {
  if (!is_terminal_) return;
  using_history();
  stifle_history(1000);
}

std::optional<std::string> LineReader::line(const std::string& prompt) {
  std::string text;
  if (!is_terminal_) return input_.line(text) ? std::optional(std::move(text)) : std::nullopt;
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
