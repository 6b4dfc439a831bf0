// Lines typed by a person, with editing, completion and history on a terminal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/standard_input.hpp"

struct editline;  // of libedit
struct history;

namespace poise::cli {

// What may take the place of the last word of `line`, the text before the cursor; words that end with a slash go on.
// Nothing where a tab is text.
using Completer = std::function<std::optional<std::vector<std::string>>(std::string_view line)>;

class LineReader {
 public:
  // `earlier`: lines of the history, the oldest first.
  explicit LineReader(Completer completer = {}, const std::vector<std::string>& earlier = {});
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool is_terminal() const { return is_terminal_; }
  // The next line, without its end; nothing at the end of the input, and after Ctrl-C. Shows `prompt` on a terminal
  // only.
  std::optional<std::string> line(const std::string& prompt);
  // True if nothing was typed before line() returned nothing.
  bool was_empty() const { return was_empty_; }
  // Adds a line to the history.
  void remember(const std::string& text);

 private:
  struct CloseEditor {
    void operator()(::editline* editor) const;
  };
  struct CloseHistory {
    void operator()(struct ::history* lines) const;
  };
  static LineReader& of(::editline* editor);
  static char* show_prompt(::editline* editor);
  static unsigned char complete(::editline* editor, int key);

  bool is_terminal_;
  bool was_empty_ = true;
  Completer completer_;
  std::string prompt_;
  std::unique_ptr<struct ::history, CloseHistory> history_;
  std::unique_ptr<::editline, CloseEditor> editor_;  // only for a terminal
  Input input_;
};

}  // namespace poise::cli
