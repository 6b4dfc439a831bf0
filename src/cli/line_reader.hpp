// Lines that a person types, with editing and history on a terminal.
#pragma once

#include <optional>
#include <string>

#include "cli/standard_input.hpp"

namespace poise::cli {

class LineReader {
 public:
  LineReader();

  bool is_terminal() const { return is_terminal_; }
  // The next line, without its end; nothing at the end of the input. `prompt` is shown on a terminal only.
  std::optional<std::string> line(const std::string& prompt);
  // For the arrow keys; not for commands that are answered at once.
  void remember(const std::string& text);

 private:
  bool is_terminal_;
  Input input_;
};

}  // namespace poise::cli
