// Reads lines that a person types, with editing, completion and history on a terminal.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/standard_input.hpp"
#include "io/file_descriptor.hpp"

struct editline;  // a type of libedit
struct history;

namespace poise::cli {

// Returns the words that may replace the last word of `line`, the text before the cursor. No space follows a word that
// ends with a slash. Returns std::nullopt where a tab is text.
using Completer = std::function<std::optional<std::vector<std::string>>(std::string_view line)>;

// Reads lines from standard input.
class LineReader {
 public:
  // `earlier` fills the history, the oldest line first.
  explicit LineReader(Completer completer = {}, const std::vector<std::string>& earlier = {});
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Returns true if a person types at a terminal, and the command has a single rank. Several ranks read plain lines.
  bool is_terminal() const { return is_terminal_; }
  // Returns the next line, without its end; std::nullopt at the end of the input, and after Ctrl-C. Shows `prompt` on a
  // terminal only.
  std::optional<std::string> read_line(const std::string& prompt);
  // Returns true if the user typed no text before read_line() returned std::nullopt.
  bool was_empty() const { return was_empty_; }
  // Adds a text to the history that the arrow keys show, in memory only. Ignores an empty text.
  void remember(const std::string& text);

 private:
  struct CloseEditor {
    void operator()(::editline* editor) const;
  };
  struct CloseHistory {
    void operator()(struct ::history* lines) const;
  };
  static LineReader& find_reader(::editline* editor);
  static char* get_prompt(::editline* editor);
  static unsigned char complete(::editline* editor, int key);

  bool is_terminal_;
  bool was_empty_ = true;
  Completer completer_;
  std::string prompt_;
  std::unique_ptr<struct ::history, CloseHistory> history_;
  std::unique_ptr<::editline, CloseEditor> editor_;  // only for a terminal
  TextInput input_;
};

// Keeps the lines of earlier conversations, for the arrow keys, in a file that only its owner can read. Each line of
// the file is a JSON string, so that a text of several lines is one entry. Errors with the file do not end the
// conversation, but lines may be lost.
class HistoryFile {
 public:
  // Opens $XDG_STATE_HOME/poise/chat_history, or ~/.local/state/poise/chat_history if the variable is not an absolute
  // path. Creates the file and its directories. Keeps no lines if there is no such directory, or if the file is not a
  // regular file of this user.
  HistoryFile();

  // Returns the last texts, at most 1,000, the oldest first. Shortens a file of more than 2,000 lines to these texts.
  std::vector<std::string> read();
  void append(const std::string& text);

 private:
  void shorten(const std::vector<std::string>& texts);

  std::string path_;
  FileDescriptor fd_;
};

// Keeps Ctrl-C from ending the program while this object exists. Ctrl-C then stops one piece of work.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Forgets Ctrl-C. Returns true if it was pressed since the last call of clear() or run().
  bool clear();

  // Runs `work` with a stop token. Ctrl-C requests a stop. Returns true if a stop was requested.
  bool run(const std::function<void(const std::stop_token& stop)>& work);

 private:
  struct sigaction before_ = {};
};

}  // namespace poise::cli
