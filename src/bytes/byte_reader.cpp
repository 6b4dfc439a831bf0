#include "bytes/byte_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bytes/short_text.hpp"

namespace poise {

ByteReader::ByteReader(const Source& source, std::string context)
    : ByteReader(source, std::move(context), 0, source.size()) {}

ByteReader::ByteReader(const Source& source, std::string context, std::uint64_t begin, std::uint64_t end)
    : source_(&source), context_(std::move(context)), position_(begin), end_(end), window_(source.bytes()) {
  if (begin > end || end > source.size())
    throw Error(ErrorKind::internal, "ByteReader outside its source", source.name(), begin);
}

void ByteReader::check_remaining(std::uint64_t length, std::string_view field) const {
  if (length <= remaining()) return;
  fail_at_end(field, fmt::format("{} wanted, {} left", format_count(length, "byte"), remaining()), position_);
}

const std::byte* ByteReader::advance(std::uint64_t length, std::string_view field) {
  check_remaining(length, field);
  const bool goes_on = position_ >= window_begin_ && position_ - window_begin_ <= window_.size();
  if (!goes_on || length > window_.size() - (position_ - window_begin_)) {
    // A window after a jump is small; it doubles while reading continues from there.
    window_bytes_ = goes_on ? std::min(2 * window_bytes_, kMostWindowBytes) : kLeastWindowBytes;
    const std::uint64_t wanted = std::min(std::max<std::uint64_t>(length, window_bytes_), remaining());
    window_ = {};  // stays empty until the fetch has succeeded
    window_begin_ = 0;
    buffer_.resize(wanted);
    source_->read(position_, buffer_);
    window_ = buffer_;
    window_begin_ = position_;
  }
  const std::byte* at = window_.data() + (position_ - window_begin_);
  position_ += length;
  return at;
}

std::string_view ByteReader::read_text(std::uint64_t length, std::string_view field) {
  const std::byte* at = advance(length, field);
  return {reinterpret_cast<const char*>(at), length};
}

void ByteReader::skip(std::uint64_t length, std::string_view field) {
  check_remaining(length, field);
  position_ += length;
}

void ByteReader::seek(std::uint64_t position) {
  if (position > end_) throw Error(ErrorKind::internal, "seek beyond the end of a ByteReader", path(), position);
  position_ = position;
}

void ByteReader::set_end(std::uint64_t end) {
  if (end < position_ || end > end_) throw Error(ErrorKind::internal, "end outside a ByteReader", path(), end);
  end_ = end;
}

ByteReader::Scope ByteReader::open_scope(std::string_view noun, std::int64_t index) {
  if (depth_ == kMaxDepth) throw Error(ErrorKind::internal, "ByteReader scopes nest too deep", path(), position_);
  frames_[depth_++] = {noun, index};
  return Scope(*this);
}

std::string ByteReader::describe(std::string_view field, std::string_view problem) const {
  std::string text = context_;
  for (std::size_t i = 0; i < depth_; ++i) {
    text += frames_[i].index < 0 ? fmt::format(": {}", frames_[i].noun)
                                 : fmt::format(": {} {}", frames_[i].noun, frames_[i].index);
  }
  return text + (field.empty() ? fmt::format(": {}", problem) : fmt::format(": {}: {}", field, problem));
}

void ByteReader::fail_at_end(std::string_view field, std::string problem, std::uint64_t offset) const {
  if (!note_at_end_.empty()) problem += fmt::format(": {}", note_at_end_);
  fail(field, problem, offset);
}

void ByteReader::fail(std::string_view field, std::string_view problem, std::uint64_t offset) const {
  fail(ErrorKind::invalid_file, field, problem, offset);
}

void ByteReader::fail(ErrorKind kind, std::string_view field, std::string_view problem, std::uint64_t offset) const {
  throw Error(kind, describe(field, problem), path(), offset);
}

void ByteReader::require_end(std::uint64_t size, std::string_view what) const {
  if (end_ < size) fail("", fmt::format("the file is cut off: it needs {} bytes, has {}", size, end_), end_);
  if (end_ > size) {
    fail(
        "",
        fmt::format("{} bytes after the last {}: expected a file of {} bytes, found {}", end_ - size, what, size, end_),
        size);
  }
}

}  // namespace poise
