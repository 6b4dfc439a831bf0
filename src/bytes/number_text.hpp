// Numbers and sizes as people write them, in options and arguments: each is taken as a whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace poise {

// The number that the whole text is; nothing when it is none, is not finite or does not fit the type. Number is one of
// int, unsigned, std::int64_t, std::uint64_t, float and double.
template <typename Number>
std::optional<Number> number_from(std::string_view text);

// "512", "64KiB", "2GB", "1 MB" (units of 1000 or, with an i, 1024; upper or lower case); nothing when it is no such
// size or 2^64 and more.
std::optional<std::uint64_t> size_from(std::string_view text);

// For errors: what a text was expected to be, where sizes have to be more than nothing.
constexpr std::string_view kSizeExpected = "a size of 1 byte or more: 4096, 64KiB, 2GB";

// With small letters in place of ASCII capitals.
std::string in_small_letters(std::string_view text);

}  // namespace poise
