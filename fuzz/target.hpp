// What the fuzz targets are made of.
//
// A target is one file with one function, LLVMFuzzerTestOneInput, that hands its bytes to the library. An Error is an
// answer like any other. A finding - a crash, a report of a sanitizer, ErrorKind::internal, an exception that is no
// Error, or more memory than 4 times the input and 64 MB - ends the program.
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

// Runs `body`, which works on that many bytes of input.
void expect_sound(std::size_t input_bytes, const std::function<void()>& body);

// Ends the program with a message.
[[noreturn]] void report(std::string_view finding);

// A copy in a block of exactly that size, so that AddressSanitizer sees a step outside.
SourcePtr source(Bytes bytes, std::string name);

// The same of one step of a body, after which it goes on.
void answer(const std::function<void()>& ask);

// Asks a model for everything it says: metadata as JSON, its faults, its vocabulary as a tokenizer, every part from
// front to back as far as kMostBytes. A part that cannot be read is an answer.
void use(const Model& model);
void use(const Vocabulary& vocabulary);
// Also encodes and decodes a text, whole and token by token.
void use(const Vocabulary& vocabulary, std::string_view text);
inline constexpr std::uint64_t kMostBytes = 4 << 20;

// A directory of this process, in memory where the system has such a place; it goes away when the program ends.
const std::filesystem::path& scratch_directory();
void write_file(const std::filesystem::path& path, Bytes bytes);
// An empty text is a file that is not there.
void put_file(const std::filesystem::path& path, std::string_view text);

// The input as several texts with the byte 0x1e between them; the last ones may be empty.
std::vector<std::string_view> split(Bytes bytes, std::size_t count);

}  // namespace poise::fuzz
