// SourceRange: a Source as the ByteRange of a ByteReader.
#pragma once

#include <poise/source.hpp>

#include "bytes/byte_reader.hpp"
#include "io/positioned_io.hpp"

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

}  // namespace poise
