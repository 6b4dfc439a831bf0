#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <poise/error.hpp>
#include <poise/value.hpp>

#include "bytes/short_text.hpp"

namespace poise::cli {
namespace {

// Returns true for a continuation byte of UTF-8: 0x80 to 0xbf.
bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

// Returns the number of code points, as an estimate of the text's columns on a terminal. It is wrong for wide and
// combining characters, which are rare in tables.
std::size_t measure_width(const std::string& text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

// Returns the size in bytes of the control character with which a text begins; 0 if it begins with another character.
// Control characters are those that a terminal obeys instead of showing them, and those that change the direction of
// text.
std::size_t measure_control_character(std::string_view text) {
  const auto get_byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (get_byte(0) < 0x20 || get_byte(0) == 0x7f) return 1;
  if (get_byte(0) == 0xc2 && get_byte(1) >= 0x80 && get_byte(1) < 0xa0) return 2;  // U+0080 to U+009F
  if (get_byte(0) == 0xd8 && get_byte(1) == 0x9c) return 2;                        // U+061C
  if (get_byte(0) != 0xe2) return 0;
  const bool turns = get_byte(1) == 0x80
                         ? get_byte(2) == 0x8e || get_byte(2) == 0x8f || (get_byte(2) >= 0xaa && get_byte(2) <= 0xae)
                         : get_byte(1) == 0x81 && get_byte(2) >= 0xa6 && get_byte(2) <= 0xa9;
  return turns ? 3 : 0;  // U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069
}

// Has true for each byte with which a control character may begin.
constexpr auto kMayBeginControl = [] {
  std::array<bool, 256> table{};
  std::fill_n(table.begin(), 0x20, true);
  for (const unsigned byte : {0x7fU, 0xc2U, 0xd8U, 0xe2U}) table[byte] = true;
  return table;
}();

// Appends text with each byte of a control character as \xNN, except for characters at which `kept` begins.
void append_escaped(std::string& out, std::string_view text, std::string_view kept = {}) {
  const auto is_plain = [](char c) { return !kMayBeginControl[static_cast<unsigned char>(c)]; };
  if (std::ranges::all_of(text, is_plain)) {
    out += text;
    return;
  }
  while (!text.empty()) {
    const std::size_t control = !kept.empty() && text.starts_with(kept) ? 0 : measure_control_character(text);
    const std::size_t length = std::max<std::size_t>(1, control);
    for (const char c : text.substr(0, length))
      out += control > 0 ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
    text.remove_prefix(length);
  }
}

std::string escape(std::string_view text, std::string_view kept = {}) {
  std::string result;
  append_escaped(result, text, kept);
  return result;
}

using Widths = std::vector<std::size_t>;

void widen_columns(Widths& widths, const Table::Row& row) {
  for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], measure_width(row[i]));
}

void append_line(std::string& lines, const Table::Row& row, const Widths& widths,
                 const std::vector<bool>& right_aligned) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::size_t space = widths[i] - measure_width(row[i]);
    lines += "  ";
    if (right_aligned[i]) lines.append(space, ' ');
    lines += row[i];
    if (!right_aligned[i]) lines.append(space, ' ');
  }
  while (lines.ends_with(' ')) lines.pop_back();
  lines += '\n';
}

constexpr std::size_t kPrintedBytes = 64 << 10;  // Table::print() prints whenever it has collected this much

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return format_count(bytes, "byte");
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_rate(std::uint64_t bytes, double seconds) {
  return format_bytes(seconds > 0 ? static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds) : 0) + "/s";
}

std::string format_seconds(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::clamp(std::round(seconds), 0.0, 1e12));
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string group_digits(std::uint64_t number) {
  std::string out;
  append_grouped(out, number);
  return out;
}

void append_grouped(std::string& out, std::uint64_t number) {
  const fmt::format_int text(number);
  const std::string_view digits(text.data(), text.size());
  std::size_t at = (digits.size() - 1) % 3 + 1;
  out += digits.substr(0, at);
  for (; at < digits.size(); at += 3) {
    out += ',';
    out += digits.substr(at, 3);
  }
}

std::string format_number(double number) { return std::isnan(number) ? "NaN" : fmt::format("{:.3g}", number); }

std::string format_decibels(double ratio) {
  if (std::isnan(ratio)) return "NaN";
  return ratio > 0 && std::isinf(ratio) ? "exact" : fmt::format("{:.1f}", ratio);
}

std::string clip_columns(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if (!is_continuation(text[end]) && shown++ == columns) break;
  }
  return std::string(text.substr(0, end));
}

std::optional<std::size_t> find_terminal_columns(int fd) {
  struct winsize size {};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return std::nullopt;
  return size.ws_col;
}

std::string make_printable(std::string_view text) { return escape(text); }
void append_printable(std::string& out, std::string_view text) { append_escaped(out, text); }
std::string make_printable_lines(std::string_view text) { return escape(text, "\n"); }
std::string make_printable_message(std::string_view text) { return escape(text, "\n  "); }

void print_now(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw std::system_error(errno, std::generic_category());
}

void print_generated(std::string_view text) {
  print_now(::isatty(STDOUT_FILENO) == 1 ? make_printable_lines(text) : std::string(text));
}

bool has_colors(int fd) {
  const auto get = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return ::isatty(fd) == 1 && get("NO_COLOR").empty() && get("TERM") != "dumb";
}

std::string paint(std::string_view text, Color color, int fd) {
  if (!has_colors(fd)) return std::string(text);
  constexpr std::array<std::string_view, 5> kCodes = {"1", "1;31", "1;32", "1;33", "1;36"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes.at(static_cast<std::size_t>(color)), text);
}

void print_to_stderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void print_message(std::string_view text) {
  constexpr std::array kWords = {std::pair{std::string_view("warning:"), Color::yellow},
                                 std::pair{std::string_view("note:"), Color::cyan}};
  for (const auto& [word, color] : kWords) {
    if (text.starts_with(word))
      return print_to_stderr(fmt::format("poise: {}{}\n", paint(word, color, STDERR_FILENO), text.substr(word.size())));
  }
  print_to_stderr(fmt::format("{} {}\n", paint("poise:", Color::red, STDERR_FILENO), text));
}

void print_note(const Finding& finding) {
  const char* const word = finding.severity == Severity::error ? "warning" : "note";
  print_message(fmt::format("{}: {}", word, make_printable(finding.message)));
}

std::string describe_with_offset(const Finding& finding) {
  return finding.offset ? fmt::format("{} (at 0x{:x})", finding.message, *finding.offset) : finding.message;
}

std::string format_finding(const Finding& finding, const std::string& path) {
  const char* severity = finding.severity == Severity::error ? "error" : "warning";
  const std::string& where = finding.path.empty() ? path : finding.path;
  return fmt::format("{}: {}{}", severity, where == path ? "" : make_printable(where) + ": ",
                     make_printable_message(describe_with_offset(finding)));
}

Table::Table(Row header, std::vector<bool> right_aligned)
    : rows_{std::move(header)}, right_aligned_(std::move(right_aligned)) {}

void Table::add(Row row) { rows_.push_back(std::move(row)); }

std::string Table::text() const {
  Widths widths(right_aligned_.size());
  for (const Row& row : rows_) widen_columns(widths, row);
  std::string result;
  for (const Row& row : rows_) append_line(result, row, widths, right_aligned_);
  return result;
}

void Table::print(std::size_t count, FunctionRef<void(std::size_t index, Row& row)> fill) const {
  Row row(right_aligned_.size());
  const auto make = [&](std::size_t index) {
    for (std::string& cell : row) cell.clear();
    fill(index, row);
  };
  Widths widths(right_aligned_.size());
  for (const Row& kept : rows_) widen_columns(widths, kept);
  for (std::size_t i = 0; i < count; ++i) {
    make(i);
    widen_columns(widths, row);
  }
  std::string lines;
  for (const Row& kept : rows_) append_line(lines, kept, widths, right_aligned_);
  for (std::size_t i = 0; i < count; ++i) {
    make(i);
    append_line(lines, row, widths, right_aligned_);
    if (lines.size() < kPrintedBytes) continue;
    fmt::print("{}", lines);
    lines.clear();
  }
  fmt::print("{}", lines);
}

std::optional<std::string> TextLines::read_next() {
  std::string line;
  if (!input_.read_line(line)) return std::nullopt;
  ++number_;
  const Value value = parse_json(line, name());
  if (const auto* text = value.get_if<std::string>()) return *text;
  throw Error(ErrorKind::invalid_file, "expected a JSON string", name());
}

std::string TextLines::name() const { return fmt::format("line {} of the input", number_); }

void refuse_text_with_jsonl(bool has_lines, const std::string& text) {
  if (has_lines && text != "-")
    throw CLI::ValidationError("--jsonl", "texts come from standard input, one per line; leave out TEXT");
}

}  // namespace poise::cli
