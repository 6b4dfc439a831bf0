// JSON on standard output, printed in pieces while it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include <poise/value.hpp>

#include "syntax/json_writer.hpp"

namespace poise::cli {

inline Value number_or_null(std::optional<std::uint64_t> number) { return number ? Value(*number) : Value(); }

class JsonOutput {
 public:
  JsonWriter* operator->() { return &writer_; }

  // Prints what has been written, once that is much.
  void flush() {
    if (writer_.size() > kPiece) fmt::print("{}", writer_.take());
  }
  // Prints the rest and a line break. Called after everything is written.
  void finish() { fmt::print("{}\n", writer_.take()); }

 private:
  static constexpr std::size_t kPiece = 64 << 10;
  JsonWriter writer_{2};
};

}  // namespace poise::cli
