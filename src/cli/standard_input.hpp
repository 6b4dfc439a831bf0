// Standard input or another file, whole or line by line.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace poise::cli {

class Input {
 public:
  // Requires: the file outlives this, and nothing else has read from it. Errors call it by `name`.
  explicit Input(std::FILE* file = stdin, std::string name = "standard input") : file_(file), name_(std::move(name)) {}

  // Throws unsupported for more than 256 MiB.
  std::string all();
  // The next line, without its end, as soon as it is there; false after the last one. Throws unsupported for a longer
  // one than that.
  bool line(std::string& line);
  // True if line() does not have to wait.
  bool has_line() const { return buffer_.find('\n', begin_) != std::string::npos; }

 private:
  bool fill();

  std::FILE* file_;
  std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what line() has not returned
};

}  // namespace poise::cli
