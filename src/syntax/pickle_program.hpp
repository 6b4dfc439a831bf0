// The bytes of a pickle, read step by step, and the memory that its objects may still take.
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
  // Bytes beyond 2^31 do not belong to it: places in a pickle have 32 bits. Requires: `name` outlives this.
  Program(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t position() const { return position_; }
  // Where the current step is.
  std::size_t step_at() const { return step_at_; }

  Step next_step();

  // What follows a step. `what` names it in errors.
  std::span<const std::byte> raw(std::uint64_t length, std::string_view what);
  template <typename T>
  T number(std::string_view what) {
    return load_le<T>(raw(sizeof(T), what).data());
  }
  // Up to a line feed, which is left out.
  std::string_view line(std::string_view what);
  // A signed number that is a length.
  std::uint64_t length(std::string_view what);

  // Throws unsupported where objects take more memory than the bytes justify.
  void charge(std::uint64_t bytes);
  // Throws invalid_file at the current step.
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  const std::string& name_;
  std::uint64_t begin_;
  std::span<const std::byte> bytes_;
  std::uint64_t budget_;
  std::size_t position_ = 0;
  std::size_t step_at_ = 0;
};

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace poise::pickle
