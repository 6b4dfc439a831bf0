// Texts on standard input, a JSON string a line: --jsonl.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/standard_input.hpp"

namespace poise::cli {

class TextLines {
 public:
  // The next text; nothing after the last one. Throws invalid_file, naming the line.
  std::optional<std::string> next();
  // True if next() does not have to wait.
  bool has_next() const { return input_.has_line(); }

  // What errors call the last text: "line 3 of the input".
  std::string name() const;

 private:
  Input input_;
  std::size_t number_ = 0;
};

// Throws for a text argument, "-" by default, together with --jsonl.
void require_no_text(bool has_lines, const std::string& text);

}  // namespace poise::cli
