// Numbers and texts of protocol 0, which a pickle spells on lines, as CPython reads them (Modules/_pickle.c, and
// Lib/pickle.py where it accepts more).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace poise::pickle {

// An integer of any size.
struct LineInteger {
  std::optional<std::int64_t> value;  // absent: it has more than 64 bits
  std::string bytes;                  // of a wide one: two's complement, lowest first; empty for more than 64 digits
};

// int(text, base): blanks around it, a sign, single underscores between digits; base 0 takes 0x, 0o and 0b, too. What
// follows a NUL does not count, as in C. Absent if Python refuses the text. Requires: base is 10 or 0.
std::optional<LineInteger> parse_line_integer(std::string_view text, unsigned base);

// True for 017, which Python's C code before 3.14 reads as 15, later code as 17, and its Python code not at all.
bool is_ambiguous_integer(std::string_view text);

// float(text): also " 1_0.5 ", "+Infinity", "nan". Too large a number is infinite, one too small is zero. Absent if
// Python refuses the text.
std::optional<double> parse_line_real(std::string_view text);

// The bytes between the quotes of a STRING step: \n \x41 \101 and the other escapes of bytes; an unknown escape stays
// as it is. Absent if an escape is cut off.
std::optional<std::string> decode_line_string(std::string_view text);

// UTF-8 for the Latin-1 of a UNICODE step, with \u1234 and \U00012345. A backslash takes the character after it along,
// so that \\u1234 holds no escape. Surrogates become three bytes each. Absent if an escape is cut off or too large.
std::optional<std::string> decode_line_unicode(std::string_view text);

}  // namespace poise::pickle
