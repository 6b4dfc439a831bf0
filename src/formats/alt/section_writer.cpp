#include "formats/alt/section_writer.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"

namespace poise::alt {

void SectionWriter::i32(std::string_view field, std::int64_t value) {
  if (value < INT32_MIN || value > INT32_MAX) refuse(field, fmt::format("{} does not fit the format's 32 bits", value));
  fields_.i32(static_cast<std::int32_t>(value));
}

void SectionWriter::count(std::string_view field, std::uint64_t value) {
  if (value > INT32_MAX) refuse(field, fmt::format("{} does not fit the format's 32 bits", value));
  fields_.i32(static_cast<std::int32_t>(value));
}

void SectionWriter::text_length(std::string_view field, std::string_view value) {
  if (value.size() > INT32_MAX)
    refuse(field, fmt::format("{} bytes of text do not fit the format's 32-bit length", value.size()));
  if (value.find('\0') != std::string_view::npos) refuse(field, "the text holds a NUL byte");
  if (!is_utf8(value)) refuse(field, "the text is not UTF-8");
  fields_.i32(static_cast<std::int32_t>(value.size()));
}

void SectionWriter::text(std::string_view field, std::string_view value) {
  text_length(field, value);
  text_bytes(value);
}

void SectionWriter::refuse(std::string_view field, std::string_view problem) const {
  throw Error(ErrorKind::unsupported, fmt::format("alt: {}: {}: {}", section_, field, problem));
}

}  // namespace poise::alt
