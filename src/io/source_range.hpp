// SourceRange: a Source as ByteReader wants to see it.
#pragma once

#include <poise/source.hpp>

#include "bytes/byte_reader.hpp"

namespace poise {

// Requires: the source outlives the range.
class SourceRange final : public ByteRange {
 public:
  explicit SourceRange(const Source& source) : source_(&source) {}
  const std::string& name() const override { return source_->name(); }
  std::uint64_t size() const override { return source_->size(); }
  std::span<const std::byte> resident() const override { return source_->bytes(); }
  void fetch(std::uint64_t offset, std::span<std::byte> out) const override { source_->read(offset, out); }

 private:
  const Source* source_;
};

}  // namespace poise
