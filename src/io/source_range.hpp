// SourceRange: a Source as the ByteRange of a ByteReader.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <poise/blob.hpp>
#include <poise/source.hpp>

#include "bytes/byte_reader.hpp"
#include "io/file_descriptor.hpp"

namespace poise {

// Requires: the source outlives the range.
class SourceRange final : public ByteRange {
 public:
  enum class Records {
    together,
    scattered,  // small and far apart: a system call for each is faster than its page faults
  };
  explicit SourceRange(const Source& source, Records records = Records::together)
      : source_(&source), by_calls_(records == Records::scattered && source.descriptor() >= 0) {}

  const std::string& name() const override { return source_->name(); }
  std::uint64_t size() const override { return source_->size(); }
  std::span<const std::byte> resident() const override {
    return by_calls_ ? std::span<const std::byte>() : source_->bytes();
  }
  void fetch(std::uint64_t offset, std::span<std::byte> out) const override {
    if (by_calls_) return read_at(source_->descriptor(), offset, out, name());
    source_->read(offset, out);
  }

 private:
  const Source* source_;
  bool by_calls_;
};

// The beginning of a source as text.

// Returns the first `size` bytes. Requires: the source has them. The caller checks limits.
inline std::string read_text(const Source& source, std::uint64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  source.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// source_part: a range of a source as a source of its own.

// Borrows the same bytes. Requires: the range is inside the source.
SourcePtr make_source_part(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name);

// SplicedSource: a file with some of its bytes replaced, made of ranges of other sources.

// Concatenates the pieces. Requires: each is inside its source.
SourcePtr make_spliced_source(std::string name, std::vector<StoredRange> pieces);

}  // namespace poise
