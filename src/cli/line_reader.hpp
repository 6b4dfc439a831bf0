// Lines typed by a person, with editing and history on a terminal.
#pragma once

#include <optional>
#include <string>

#include "cli/standard_input.hpp"

namespace poise::cli {

class LineReader {
 public:
  LineReader();

  bool is_terminal() const { return is_terminal_; }
  // The next line, without its end; nothing at the end of the input, and after Ctrl-C. Shows `prompt` on a terminal
  // only.
  std::optional<std::string> line(const std::string& prompt);
  // Adds a line to the history.
  void remember(const std::string& text);

 private:
  bool is_terminal_;
  Input input_;
};

}  // namespace poise::cli
