// Helpers of the fuzz targets.
//
// A target is one file with one function, LLVMFuzzerTestOneInput, that passes its bytes to the library. An Error is a
// valid result. A finding - a crash, a report of a sanitizer, ErrorKind::internal, an exception other than Error, or
// more memory than 4 times the input and 64 MB - ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise::fuzz {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(const std::uint8_t* data, std::size_t size) { return std::as_bytes(std::span(data, size)); }
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Runs `body` on an input of that many bytes. Reports a finding as described above.
void expect_sound(std::size_t input_bytes, const std::function<void()>& body);

// Ends the program with a message.
[[noreturn]] void report(std::string_view finding);

// Returns a source that holds a copy in a block of exactly that size, so that AddressSanitizer detects reads outside.
SourcePtr make_source(Bytes bytes, std::string name);

// Does the same as expect_sound() for one step of a body, which then continues: an Error is a valid result.
void expect_answer(const std::function<void()>& ask);

// Reads everything of a model: metadata as JSON, its faults, its vocabulary as a tokenizer, and every part from front
// to back up to kMostBytes. An unreadable part is a valid result.
void use_all(const Model& model);
void use_all(const Vocabulary& vocabulary);
// Also encodes and decodes a text, whole and token by token.
void use_all(const Vocabulary& vocabulary, std::string_view text);
inline constexpr std::uint64_t kMostBytes = 4 << 20;

// Returns a directory of this process, in memory if possible; it is removed at exit.
const std::filesystem::path& get_scratch_directory();
void write_file(const std::filesystem::path& path, Bytes bytes);
// Writes a file; for an empty text, removes it.
void put_file(const std::filesystem::path& path, std::string_view text);

// Splits the input into texts at the byte 0x1e; the last ones may be empty.
std::vector<std::string_view> split(Bytes bytes, std::size_t count);

}  // namespace poise::fuzz
