// Standard input or another file, whole or line by line.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace poise::cli {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;
// Throws not_found or io.
File open_file(const std::string& path, const char* mode);

// Throws bad_argument if a text or a model has been read from standard input already.
void claim_standard_input();

class TextInput {
 public:
  // Requires: the file outlives this, and no other reader has read from it: a second Input that reads standard input
  // throws bad_argument. Errors call it by `name`.
  explicit TextInput(std::FILE* file = stdin, std::string name = "standard input")
      : file_(file), name_(std::move(name)) {}

  // Throws unsupported for more than 256 MiB.
  std::string all();
  // Returns the next line, without its end, as soon as it is there; false after the last one. Throws unsupported for a
  // longer one than that.
  bool line(std::string& line);
  // Returns true if line() does not have to wait.
  bool has_line() const { return buffer_.find('\n', begin_) != std::string::npos; }

 private:
  // Reads a piece; false at the end. Rank 0 reads standard input for all ranks.
  bool fill();
  std::size_t read_piece(char* to) const;

  std::FILE* file_;
  std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what line() has not returned
  bool has_begun_ = false;
};

// Returns the text of a file, which may be a pipe, or of standard input for "-". Throws not_found, io, unsupported for
// more than 256 MiB, and bad_argument where another option has read standard input.
std::string read_text_file(const std::string& path);
// Returns "standard input" for "-", else the path.
std::string name_text_file(const std::string& path);

// Returns the text of a prompt: without the line break that ends a file's last line, as `echo` and editors write it.
std::string read_prompt_file(const std::string& path);

// Returns true if standard input is a file or a pipe, from which a text can be read without being asked for. False for
// a terminal, and for /dev/null and other devices.
bool has_piped_input();

}  // namespace poise::cli
