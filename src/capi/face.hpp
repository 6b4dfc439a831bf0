// What every C call needs: exceptions become a status and the caller's poise_error, C++ values plain C ones, and options that a
// caller has filled in are checked before they are believed.
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

// The size of a struct of options as it was at first, which programs that are older than its last fields have.
template <typename Options>
constexpr std::size_t kFirstSize = sizeof(Options);
template <>
inline constexpr std::size_t kFirstSize<poise_convert_options> = offsetof(poise_convert_options, verify);

// The caller's options, or the usual ones for NULL. Fields that an older program does not have are the usual ones. Fields that a newer
// program has after those known here must be zero.
template <typename Options>
Options options_or(const Options* given, const Options& usual) {
  static_assert(std::is_trivially_copyable_v<Options>);
  constexpr std::size_t kMost = 4096;
  if (given == nullptr) return usual;
  const std::size_t size = given->size;
  if (size < kFirstSize<Options> || size > kMost) {
    refuse(fmt::format("the options' size is {}, expected {}; begin with their initializer", size, sizeof(Options)));
  }
  for (std::size_t i = sizeof(Options); i < size; ++i) {
    if (reinterpret_cast<const char*>(given)[i] != 0) refuse("the options have fields that this version of Poise does not know");
  }
  Options options = usual;
  std::memcpy(&options, given, std::min(size, sizeof(Options)));
  return options;
}

ReadOptions read_options(std::int32_t io);
Progress progress_from(const poise_progress& progress);
void set_storage(const poise_storage& storage, WriteOptions& options);
Card card_from(const poise_card& card);
// Reads vocab.txt and merges.txt; nothing when both are NULL.
std::optional<Vocabulary> vocabulary_files(const char* vocab, const char* merges);

poise_dtype c_dtype(DType dtype);
// Throws bad_argument for unknown types and numbers that are none.
DType dtype_from(poise_dtype dtype);

// Borrows the texts.
poise_finding c_finding(const Finding& finding);

}  // namespace poise::capi
