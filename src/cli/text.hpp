// Makes and prints text for people: sizes, aligned tables, messages, names that are safe for a terminal. Also reads the
// texts of --jsonl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/verify.hpp>

#include "bytes/function_ref.hpp"
#include "cli/standard_input.hpp"

namespace poise::cli {

// Returns a size in decimal units (1 kB is 1000 bytes): "14.5 GB", "1.9 MB", "512 bytes".
std::string format_bytes(std::uint64_t bytes);
// Returns a speed in decimal units, such as "1.2 GB/s"; "0 bytes/s" if `seconds` is 0.
std::string format_rate(std::uint64_t bytes, double seconds);
// Returns a time in units that fit its length: "1.5 s", "42 s", "2 min 5 s", "3 h 20 min".
std::string format_seconds(double seconds);
// Returns a number with commas between groups of three digits: "14,483,464,192".
std::string group_digits(std::uint64_t number);
// Appends the text of group_digits().
void append_grouped(std::string& out, std::uint64_t number);

// Returns a number with three significant digits. A NaN of either sign becomes "NaN".
std::string format_number(double number);
// Returns a ratio of signal to noise, given in decibels: "38.1". Infinity (no noise) becomes "exact", NaN "NaN".
std::string format_decibels(double ratio);

// Makes text from a file safe for a terminal: each byte of a control character, or of a character that changes the
// direction of text, becomes \xNN.
std::string make_printable(std::string_view text);
// Appends the text of make_printable().
void append_printable(std::string& out, std::string_view text);
// Returns the text of make_printable(), but keeps line breaks.
std::string make_printable_lines(std::string_view text);
// Makes an error's message safe for a terminal. Escapes line breaks, too, unless two spaces follow. So a name with line
// breaks cannot look like another message, because messages are not indented.
std::string make_printable_message(std::string_view text);

// Returns the first `columns` code points of the text. Each counts as one column.
std::string clip_columns(std::string_view text, std::size_t columns);
// Returns the width of the terminal that a file descriptor refers to; std::nullopt if the descriptor does not refer to
// a terminal, or the terminal reports fewer than two columns.
std::optional<std::size_t> find_terminal_columns(int fd);

// Prints to standard output and flushes, so that the text appears at once. Throws std::system_error if that fails.
void print_now(std::string_view text);

// Prints text that a model generated, as print_now() does. On a terminal, escapes control characters other than line
// breaks, because a model must not control the terminal.
void print_generated(std::string_view text);

// Names the styles of messages and headings. paint() has their codes in the same order.
enum class Color : std::uint8_t { bold, red, green, yellow, cyan };
// Returns true if the file descriptor is a terminal, unless NO_COLOR is set and not empty (https://no-color.org), or
// TERM is "dumb".
bool has_colors(int fd);
// Returns the text with escape sequences that make it bold and, except for Color::bold, coloured. Returns it unchanged
// if has_colors(fd) is false.
std::string paint(std::string_view text, Color color, int fd);

// Prints to standard error, and ignores errors: fmt::print() would throw when standard error is closed.
void print_to_stderr(std::string_view text);
// Prints "poise: <text>" and a line break to standard error. If the text begins with "warning:" or "note:", that word
// is in colour; otherwise "poise:" is.
void print_message(std::string_view text);

// Prints a finding that does not stop the command to standard error. Begins with "warning:" if the finding is an error
// of the input, such as dangerous code in a file, else with "note:".
void print_note(const Finding& finding);

// Returns the finding's message and, if it has one, its offset: "... (at 0x40)".
std::string describe_with_offset(const Finding& finding);

// Returns the finding with its severity: "error: tensor a: data: ... (at 0x40)". If the finding is about another file
// than `path`, the path of that file follows the severity.
std::string format_finding(const Finding& finding, const std::string& path);

// Arranges rows in columns, each as wide as its widest cell. Columns of numbers are aligned to the right. Requires: no
// row has more cells than `right_aligned`.
class Table {
 public:
  using Row = std::vector<std::string>;

  explicit Table(Row header, std::vector<bool> right_aligned);
  void add(Row row);
  std::string text() const;
  // Prints the table to standard output, with `count` more rows that are not stored. For each of these rows, calls
  // `fill` twice with empty cells: to measure the columns, and to print.
  void print(std::size_t count, FunctionRef<void(std::size_t index, Row& row)> fill) const;

 private:
  std::vector<Row> rows_;
  std::vector<bool> right_aligned_;
};

// Reads the texts of --jsonl from standard input: a JSON string on each line.
class TextLines {
 public:
  // Returns the next text; std::nullopt after the last one. Throws invalid_file, with the line's number, for a line
  // that is not a JSON string, and the errors of TextInput::read_line().
  std::optional<std::string> read_next();
  // Returns true if a whole line has been read already, so that read_next() does not wait for input.
  bool has_next() const { return input_.has_line(); }

  // Returns the name by which errors call the last text that was read: "line 3 of the input".
  std::string name() const;

 private:
  TextInput input_;
  std::size_t number_ = 0;
};

// Throws CLI::ValidationError if --jsonl is given (`has_lines`) together with another TEXT than the default "-".
void refuse_text_with_jsonl(bool has_lines, const std::string& text);

}  // namespace poise::cli
