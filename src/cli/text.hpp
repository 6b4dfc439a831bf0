// Text for people: sizes, rates, aligned tables.
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

// Returns "14.5 GB", "1.9 MB", "512 bytes": decimal units, as disks are sold.
std::string format_bytes(std::uint64_t bytes);
// Returns "1.2 GB/s".
std::string format_rate(std::uint64_t bytes, double seconds);
// Returns "1.5 s", "42 s", "2 min 5 s", "3 h 20 min".
std::string format_seconds(double seconds);
// Returns "14,483,464,192".
std::string group_digits(std::uint64_t number);
void append_grouped(std::string& out, std::uint64_t number);

// Returns three significant digits; "NaN" for either sign.
std::string format_number(double number);
// Returns a signal-to-noise ratio: "38.1"; "exact" for an infinite one.
std::string format_decibels(double ratio);

// Returns text from a file, safe for a terminal: control characters become \xNN.
std::string make_printable(std::string_view text);
void append_printable(std::string& out, std::string_view text);
// Returns the same with line breaks kept, for messages of several lines.
std::string make_printable_lines(std::string_view text);
// Returns an error's message, with further lines indented by two spaces: a name with line breaks cannot imitate a
// message.
std::string make_printable_message(std::string_view text);

// Returns the text cut to that many columns, one for each character.
std::string clip_columns(std::string_view text, std::size_t columns);
// Returns the width of the terminal at that descriptor; std::nullopt if it is not a terminal or has no width.
std::optional<std::size_t> terminal_columns(int fd);

// Writes to standard output and flushes, so that text appears at once. Throws what fmt::print() throws.
void print_now(std::string_view text);

// Prints a model's text at once. On a terminal, escapes control characters: a model must not control the terminal.
void print_generated(std::string_view text);

// Colours of messages and headings. Only terminals get them, unless NO_COLOR is set (https://no-color.org) or TERM is
// "dumb".
enum class Color : std::uint8_t { bold, red, green, yellow, cyan };
bool has_colors(int fd);
// Returns the text in a colour, in bold letters too; unchanged where `fd` has no colours.
std::string paint(std::string_view text, Color color, int fd);

// Writes to standard error. Unlike fmt::print(), does not fail when it is closed.
void say(std::string_view text);
// Writes "poise: <text>" in the same way. Colours "poise:", or "warning:" or "note:" where the text begins with it.
void complain(std::string_view text);

// Prints a finding about an input that is used all the same to standard error: as a note, or as a warning if the file
// is faulty, as one with code in it is.
void note(const Finding& finding);

// Returns the finding's text and place: "... (at 0x40)".
std::string describe(const Finding& finding);

// Returns a finding in the file at `path`: "error: tensor a: data: ... (at 0x40)"
std::string format_finding(const Finding& finding, const std::string& path);

// Makes columns as wide as their widest cell. Right-aligned columns hold numbers.
class Table {
 public:
  using Row = std::vector<std::string>;

  explicit Table(Row header, std::vector<bool> right_aligned);
  void add(Row row);
  std::string text() const;
  // Prints the table to standard output, with `count` more rows that are not stored: `fill` makes each twice, into a
  // row of empty cells.
  void print(std::size_t count, FunctionRef<void(std::size_t index, Row& row)> fill) const;

 private:
  std::vector<Row> rows_;
  std::vector<bool> right_aligned_;
};

// Texts on standard input, a JSON string a line: --jsonl.

class TextLines {
 public:
  // Returns the next text; std::nullopt after the last one. Throws invalid_file, naming the line.
  std::optional<std::string> next();
  // Returns true if next() does not have to wait.
  bool has_next() const { return input_.has_line(); }

  // Returns the name of the last text in errors: "line 3 of the input".
  std::string name() const;

 private:
  TextInput input_;
  std::size_t number_ = 0;
};

// Throws for a text argument, "-" by default, together with --jsonl.
void require_no_text(bool has_lines, const std::string& text);

}  // namespace poise::cli
