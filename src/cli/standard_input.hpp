// Reads text from standard input or another file, whole or line by line.
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
// Opens a file as std::fopen() does. Throws not_found or io.
File open_file(const std::string& path, const char* mode);

// Reserves standard input for one text or model. Throws bad_argument for a second call.
void claim_standard_input();

// Reads a text from a file, which may be a pipe, as its bytes arrive.
class TextInput {
 public:
  // Errors show `name` as the path. Requires: the file outlives this, and no other reader has read from it. A second
  // TextInput that reads standard input throws bad_argument.
  explicit TextInput(std::FILE* file = stdin, std::string name = "standard input")
      : file_(file), name_(std::move(name)) {}

  // Returns the whole text. Throws unsupported for more than 256 MiB.
  std::string read_all();
  // Returns the text up to its end, or `bytes` of it and perhaps some more.
  std::string read_beginning(std::size_t bytes);
  // Sets `line` to the next line, without its end, as soon as it arrives. Returns false after the last one. Throws
  // unsupported for a line of more than 256 MiB.
  bool read_line(std::string& line);
  // Returns true if read_line() does not have to wait.
  bool has_line() const { return buffer_.find('\n', begin_) != std::string::npos; }

 private:
  // Reads more text into the buffer. Returns false at the end. Rank 0 reads standard input for all ranks.
  bool read_more();
  std::size_t read_piece(char* to) const;

  std::FILE* file_;
  std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;  // the beginning of the text that read_line() has not returned
  bool has_begun_ = false;
};

// Returns the text of a file, which may be a pipe, or of standard input for "-". Throws not_found, io, unsupported for
// more than 256 MiB, and bad_argument if another option has read standard input.
std::string read_text_file(const std::string& path);
// Returns the first `bytes` of such a text and perhaps some more, or all of a shorter text.
std::string read_text_beginning(const std::string& path, std::size_t bytes);
// Returns "standard input" for "-", else the path.
std::string get_input_name(const std::string& path);

// Returns the text of a prompt without the line break that ends the file, which `echo` and editors write.
std::string read_prompt_file(const std::string& path);

// Returns true if standard input is a file, pipe or socket, which commands read without "-". Returns false for a
// terminal, /dev/null and other devices.
bool has_piped_input();

}  // namespace poise::cli
