// Shows the progress of long calls on standard error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <poise/progress.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

#include "bytes/checked.hpp"
#include "syntax/json_writer.hpp"
#include "tensor/group_scheme.hpp"

namespace poise::cli {

// Names the values of --progress.
enum class ProgressDisplay : std::uint8_t {
  automatic,  // a bar on a terminal; elsewhere no progress
  plain,      // a line every few seconds, and one at the end, for logs
  none,
};

struct ProgressOptions {
  std::optional<ProgressDisplay> display;  // by default none if the command is quiet, else automatic
  bool quiet = false;
};

// Adds --progress auto|plain|none and --quiet, whose help is `quiet`. Requires: `options` outlive the command.
void add_progress_options(CLI::App& command, ProgressOptions& options, const std::string& quiet);

// Returns a callback that shows progress as the options require; `verb` begins its lines. Returns an empty one if no
// progress is to be shown. The destructor of the callback's last copy erases the bar.
Progress make_progress(const ProgressOptions& options, const std::string& verb);

// Holds a sum; std::nullopt beyond 64 bits, since a small file can have huge sparse, compressed or shared parts.
using Total = std::optional<std::uint64_t>;

inline Total add_totals(Total a, Total b) { return a && b ? checked_add(*a, *b) : std::nullopt; }

// Returns the number of decoded bytes of a part; std::nullopt if headers do not show it. Decodes nothing.
inline std::optional<std::uint64_t> count_bytes(const Tensor& tensor, const Part& part) {
  const auto stated = part.blob->stated_size();
  return stated ? stated : find_group_part_bytes(tensor, part);
}

// Returns the number of decoded bytes of all parts whose number headers show.
inline Total count_bytes(const Tensor& tensor) {
  Total sum = 0;
  for (const Part& part : tensor.parts) sum = add_totals(sum, count_bytes(tensor, part).value_or(0));
  return sum;
}

inline bool are_bytes_known(const Tensor& tensor) {
  return std::ranges::all_of(tensor.parts, [&](const Part& part) { return bool(count_bytes(tensor, part)); });
}

struct Totals {
  std::size_t tensors = 0;
  Total elements = 0;
  Total bytes = 0;
  bool are_bytes_known = true;  // headers show all bytes

  void add(const Tensor& tensor) { add({1, tensor.elements(), count_bytes(tensor), cli::are_bytes_known(tensor)}); }
  void add(const Totals& others) {
    tensors += others.tensors;
    elements = add_totals(elements, others.elements);
    bytes = add_totals(bytes, others.bytes);
    are_bytes_known = are_bytes_known && others.are_bytes_known;
  }
};

// Returns the sum with commas between groups of three digits, "14,483,464,192", or "2^64 or more" on overflow.
std::string group_digits(Total total);
// Appends the text of group_digits().
void append_grouped(std::string& out, Total total);

inline Value make_number_or_null(std::optional<std::uint64_t> number) { return number ? Value(*number) : Value(); }

// Prints JSON in pieces while it is made, so that memory does not grow with the number of tensors.
class JsonOutput {
 public:
  explicit JsonOutput(JsonWriter::NotFinite not_finite = JsonWriter::NotFinite::null) : writer_(2, not_finite) {}
  JsonWriter* operator->() { return &writer_; }

  // Writes an array. `add` is called for each item, and writes it.
  template <typename Items, typename Add>
  void write_list(std::string_view key, const Items& items, Add&& add) {
    writer_.write_key(key);
    writer_.begin_array();
    for (const auto& item : items) {
      add(item);
      flush();
    }
    writer_.end_array();
  }
  // Prints the rest and a line break. Requires: the JSON is complete.
  void finish() { fmt::print("{}\n", writer_.release()); }

 private:
  void flush() {
    if (writer_.size() > kPiece) fmt::print("{}", writer_.release());
  }

  static constexpr std::size_t kPiece = 64 << 10;
  JsonWriter writer_;
};

}  // namespace poise::cli
