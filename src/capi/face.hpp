// What every C call needs: turns exceptions into a status and the caller's poise_error, and C++ values into C ones;
// checks the options that a caller has filled in.
#pragma once

#include <poise.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/dtype.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/progress.hpp>

namespace poise::capi {

poise_status succeed(poise_error* error) noexcept;
// Requires: an exception is being handled.
poise_status fail(poise_error* error) noexcept;

// Runs the body of a C call.
template <typename Action>
poise_status guard(poise_error* error, Action&& action) noexcept {
  try {
    action();
  } catch (...) {
    return fail(error);
  }
  return succeed(error);
}

[[noreturn]] void refuse(std::string message);   // bad_argument
[[noreturn]] void no_such(std::string message);  // not_found

// The object that a pointer points to. Throws bad_argument naming the parameter when it is NULL.
template <typename T>
T& at(T* pointer, const char* parameter) {
  if (pointer == nullptr) refuse(fmt::format("{} is NULL", parameter));
  return *pointer;
}

// `count` items from a caller; NULL is valid only for zero items.
template <typename T>
std::span<T> items(T* pointer, std::size_t count, const char* parameter) {
  if (count > 0) at(pointer, parameter);
  return {pointer, count};
}

std::string_view text_at(const char* text, const char* parameter);
std::string_view view(poise_text text, const char* parameter);
std::optional<std::string> optional_text(const char* text);

poise_text lend(std::string_view text);
poise_string give(std::string_view text);  // throws bad_alloc

// Fills a char array of a struct; cuts text that does not fit between two characters.
void copy_text(std::string_view text, std::span<char> out) noexcept;

// The size of a struct in version 0.2, the first with a stable layout. A struct that grows gets a row here, so that
// programs that are older than its last fields still work.
template <typename Struct>
constexpr std::size_t kFirstSize = sizeof(Struct);
template <>
inline constexpr std::size_t kFirstSize<poise_session_options> = offsetof(poise_session_options, exact);
template <>
inline constexpr std::size_t kFirstSize<poise_generate_options> = offsetof(poise_generate_options, min_p);
template <>
inline constexpr std::size_t kFirstSize<poise_session_info> = offsetof(poise_session_info, hidden_size);

// The size that a caller gives for a struct: at least its first size, and at most what is possible.
template <typename Struct>
std::size_t checked_size(const Struct& given) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, size) == 0);
  constexpr std::size_t kMost = 4096;
  if (given.size >= kFirstSize<Struct> && given.size <= kMost) return given.size;
  refuse(
      fmt::format("the size of a struct is {}, expected {}; begin with its initializer", given.size, sizeof(Struct)));
}

// The struct that the caller has filled in. Fields that an older program lacks come from `usual`. Fields of a newer
// program that are unknown here must be zero, and so must reserved ones.
template <typename Struct>
Struct taken(const Struct& given, const Struct& usual) {
  const std::size_t size = checked_size(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (reinterpret_cast<const char*>(&given)[i] != 0)
      refuse("a struct has fields that this version of Poise does not know");
  }
  Struct known = usual;
  std::memcpy(&known, &given, std::min(size, sizeof(Struct)));
  known.size = sizeof(Struct);
  if constexpr (requires { known.reserved; }) {
    if (known.reserved != 0) refuse(fmt::format("reserved is {}, expected 0", known.reserved));
  }
  return known;
}

// The same for options; NULL means the usual ones.
template <typename Options>
Options options_or(const Options* given, const Options& usual) {
  return given == nullptr ? usual : taken(*given, usual);
}

// Fills the caller's struct up to its size. Fields of a newer program that are unknown here become zero.
template <typename Struct>
void give_struct(Struct* out, const char* parameter, const Struct& value) {
  const std::size_t size = checked_size(at(out, parameter));
  auto* bytes = reinterpret_cast<char*>(out);
  const std::size_t known = std::min(size, sizeof(Struct));
  std::memcpy(bytes + sizeof size, reinterpret_cast<const char*>(&value) + sizeof size, known - sizeof size);
  std::memset(bytes + known, 0, size - known);
}

ReadOptions read_options(poise_io io);
Progress progress_from(const poise_progress& progress);
// These two accept NULL: nothing is set, nothing is known.
void set_storage(const poise_storage* storage, WriteOptions& options);
Card card_from(const poise_card* card);
// Reads vocab.txt and merges.txt; nothing when both are NULL.
std::optional<Vocabulary> vocabulary_files(const char* vocab, const char* merges);

poise_dtype c_dtype(DType dtype);
// Throws bad_argument for unknown types and invalid numbers.
DType dtype_from(poise_dtype dtype);

// Borrows the texts.
poise_finding c_finding(const Finding& finding);

}  // namespace poise::capi
