// The bytes of a pickle, read step by step, and the memory that its objects may still take.
//
// Two kinds of errors: invalid_file at a step where Python stops, too, so that it runs no later step; unsupported at a
// step where Python, or one of its readers, may go on, so that nobody has seen what comes after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bytes/little_endian.hpp"
#include "syntax/pickle_steps.hpp"

namespace poise::pickle {

class Program {
 public:
  // Ignores bytes beyond 2^31, because places in a pickle have 32 bits. Requires: `name` outlives this.
  Program(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t position() const { return position_; }
  // Returns the offset of the current step.
  std::size_t step_at() const { return step_at_; }

  PickleStep read_step();

  // Begins a frame of the `length` bytes that follow the current step (protocol 4). Python's readers treat a step that
  // goes beyond its frame, and a frame inside another one, differently: some drop bytes, some go on, some fail. Throws
  // unsupported for both.
  void begin_frame(std::uint64_t length);

  // Returns the `length` bytes that follow a step. `what` names them in errors.
  std::span<const std::byte> read_bytes(std::uint64_t length, std::string_view what);
  template <typename T>
  T read_number(std::string_view what) {
    return load_le<T>(read_bytes(sizeof(T), what).data());
  }
  // Returns the bytes up to a line feed, and skips the line feed.
  std::string_view read_line(std::string_view what);
  bool has_lines(std::size_t count) const;
  // Reads a signed number that is a length.
  std::uint64_t read_length(std::string_view what);
  // Returns true if a step needs bytes beyond the end.
  bool has_run_out() const { return has_run_out_; }

  // Throws unsupported where objects take more memory than the bytes justify.
  void charge(std::uint64_t bytes);
  // Throws invalid_file at the current step, where Python stops.
  [[noreturn]] void fail(const std::string& problem) const;
  // Throws unsupported at the current step, where Python may go on.
  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  void require_in_frame(std::uint64_t end) const;

  const std::string& name_;
  std::uint64_t begin_;
  std::span<const std::byte> bytes_;
  std::uint64_t budget_;
  std::size_t position_ = 0;
  std::size_t step_at_ = 0;
  std::uint64_t frame_end_ = 0;  // of the last frame
  bool has_run_out_ = false;
};

inline std::string_view view_as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace poise::pickle
