// The lines that were typed in earlier conversations, for the arrow keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/file_descriptor.hpp"

namespace poise::cli {

// A line of the file is a JSON string, so that a text of several lines is one entry. Only its owner can read it. No
// error of the file ends a conversation: it then keeps nothing.
class HistoryFile {
 public:
  // $XDG_STATE_HOME/poise/chat_history, below ~/.local/state where that is not an absolute path. Creates it, and its
  // directories. Keeps nothing if neither has a place, and in anything but a regular file of this user.
  HistoryFile();

  // The last lines, the oldest first. A file with many more is shortened to them.
  std::vector<std::string> read();
  void append(const std::string& text);

 private:
  void shorten(const std::vector<std::string>& texts);

  std::string path_;
  FileDescriptor fd_;
};

}  // namespace poise::cli
