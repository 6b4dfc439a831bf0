// What every C call needs: exceptions become a status and the caller's poise_error, C++ values plain C ones, and
// options that a caller has filled in are checked before they are believed.
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

// What a pointer points to. Throws bad_argument naming the parameter when it is NULL.
template <typename T>
T& at(T* pointer, const char* parameter) {
  if (pointer == nullptr) refuse(fmt::format("{} is NULL", parameter));
  return *pointer;
}

// `count` items that a caller passes; NULL only when there are none.
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

// Fills a char array of a struct, cutting what does not fit between two characters.
void copy_text(std::string_view text, std::span<char> out) noexcept;

// The size of a struct in version 0.2, where its layout began to be kept. A struct that grows gets a row here, so that
// programs which are older than its last fields go on working.
template <typename Struct>
constexpr std::size_t kFirstSize = sizeof(Struct);
template <>
inline constexpr std::size_t kFirstSize<poise_session_options> = offsetof(poise_session_options, exact);
template <>
inline constexpr std::size_t kFirstSize<poise_generate_options> = offsetof(poise_generate_options, min_p);

// What a caller says about the size of a struct: at least its first size, and no more than a struct can be.
template <typename Struct>
std::size_t checked_size(const Struct& given) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, size) == 0);
  constexpr std::size_t kMost = 4096;
  if (given.size >= kFirstSize<Struct> && given.size <= kMost) return given.size;
  refuse(
      fmt::format("the size of a struct is {}, expected {}; begin with its initializer", given.size, sizeof(Struct)));
}

// What the caller has filled in. Fields that an older program does not have are those of `usual`. Fields that a newer
// program has after those known here must be zero.
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
  return known;
}

// The same for options, which may be NULL: the usual ones.
template <typename Options>
Options options_or(const Options* given, const Options& usual) {
  return given == nullptr ? usual : taken(*given, usual);
}

// Fills the caller's struct as far as it goes. Fields that a newer program has after those known here become zero.
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
// These two take NULL: nothing is set, nothing is known.
void set_storage(const poise_storage* storage, WriteOptions& options);
Card card_from(const poise_card* card);
// Reads vocab.txt and merges.txt; nothing when both are NULL.
std::optional<Vocabulary> vocabulary_files(const char* vocab, const char* merges);

poise_dtype c_dtype(DType dtype);
// Throws bad_argument for unknown types and numbers that are none.
DType dtype_from(poise_dtype dtype);

// Borrows the texts.
poise_finding c_finding(const Finding& finding);

}  // namespace poise::capi
