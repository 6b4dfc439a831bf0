// Makes text for people: sizes, rates, aligned tables.
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

// Returns a size in decimal units, as disks are sold: "14.5 GB", "1.9 MB", "512 bytes".
std::string format_bytes(std::uint64_t bytes);
// Returns a speed in decimal units, such as "1.2 GB/s".
std::string format_rate(std::uint64_t bytes, double seconds);
// Returns a time in units that fit its length: "1.5 s", "42 s", "2 min 5 s", "3 h 20 min".
std::string format_seconds(double seconds);
// Returns a number with commas between groups of three digits: "14,483,464,192".
std::string group_digits(std::uint64_t number);
// Appends the text of group_digits().
void append_grouped(std::string& out, std::uint64_t number);

// Returns a number with three significant digits. A NaN of either sign becomes "NaN".
std::string format_number(double number);
// Returns a signal-to-noise ratio: "38.1"; "exact" for an infinite one.
std::string format_decibels(double ratio);

// Returns text from a file, safe for a terminal: control characters become \xNN.
std::string make_printable(std::string_view text);
// Appends the text of make_printable().
void append_printable(std::string& out, std::string_view text);
// Returns the text of make_printable(), but keeps line breaks, for messages of several lines.
std::string make_printable_lines(std::string_view text);
// Returns an error's message, safe for a terminal. Keeps line breaks that two spaces follow, and escapes others, so
// that a name with line breaks cannot imitate a message.
std::string make_printable_message(std::string_view text);

// Returns the text cut to that many columns, one for each character.
std::string clip_columns(std::string_view text, std::size_t columns);
// Returns the width of the terminal that a file descriptor refers to; std::nullopt if it is not a terminal or has no
// width.
std::optional<std::size_t> find_terminal_columns(int fd);

// Prints to standard output and flushes, so that text appears at once. Throws std::system_error.
void print_now(std::string_view text);

// Prints a model's text at once. On a terminal, escapes control characters: a model must not control the terminal.
void print_generated(std::string_view text);

// Names the colours of messages and headings.
enum class Color : std::uint8_t { bold, red, green, yellow, cyan };
// Returns true if the file descriptor is a terminal, unless NO_COLOR is set (https://no-color.org) or TERM is "dumb".
bool has_colors(int fd);
// Returns the text in a colour and in bold letters; unchanged if `fd` has no colours.
std::string paint(std::string_view text, Color color, int fd);

// Prints to standard error. Unlike fmt::print(), does not fail when standard error is closed.
void print_to_stderr(std::string_view text);
// Prints "poise: <text>" and a line break to standard error. If the text begins with "warning:" or "note:", that word
// is in colour; otherwise "poise:" is.
void print_message(std::string_view text);

// Prints a finding about an input to standard error. The command goes on with the input. A finding that is an error of
// the file (such as code in it) is printed as "warning:", others as "note:".
void print_note(const Finding& finding);

// Returns the finding's text and place: "... (at 0x40)".
std::string describe_with_offset(const Finding& finding);

// Returns a finding in the file at `path`: "error: tensor a: data: ... (at 0x40)"
std::string format_finding(const Finding& finding, const std::string& path);

// Aligns cells in columns as wide as their widest cell. Right-aligned columns hold numbers.
class Table {
 public:
  using Row = std::vector<std::string>;

  explicit Table(Row header, std::vector<bool> right_aligned);
  void add(Row row);
  std::string text() const;
  // Prints the table to standard output, with `count` more rows that are not stored. `fill` makes each of these rows
  // twice, into a row of empty cells.
  void print(std::size_t count, FunctionRef<void(std::size_t index, Row& row)> fill) const;

 private:
  std::vector<Row> rows_;
  std::vector<bool> right_aligned_;
};

// Reads the texts of --jsonl from standard input: a JSON string on each line.
class TextLines {
 public:
  // Returns the next text; std::nullopt after the last one. Throws invalid_file, naming the line.
  std::optional<std::string> read_next();
  // Returns true if read_next() does not have to wait.
  bool has_next() const { return input_.has_line(); }

  // Returns the name of the last text in errors: "line 3 of the input".
  std::string name() const;

 private:
  TextInput input_;
  std::size_t number_ = 0;
};

// Throws if --jsonl is given together with a text argument, which is "-" by default.
void require_no_text(bool has_lines, const std::string& text);

}  // namespace poise::cli
