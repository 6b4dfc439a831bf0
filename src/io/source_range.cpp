#include "io/source_range.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <poise/error.hpp>

#include "io/file_descriptor.hpp"

namespace poise {
namespace {

class UnmappedSource final : public Source {
 public:
  explicit UnmappedSource(SourcePtr whole) : Source(whole->name(), whole->size()), whole_(std::move(whole)) {}

  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_at(whole_->descriptor(), offset, out, name());
  }

 private:
  SourcePtr whole_;
};

class SourcePart final : public Source {
 public:
  SourcePart(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name)
      : Source(std::move(name), size), whole_(std::move(whole)), begin_(begin) {}

  bool mapped() const override { return whole_->mapped(); }
  std::span<const std::byte> bytes() const override {
    const auto all = whole_->bytes();
    return all.empty() ? all : all.subspan(static_cast<std::size_t>(begin_), static_cast<std::size_t>(size()));
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset)
      throw Error(ErrorKind::internal, "a read outside the part of a file", name(), offset);
    whole_->read(begin_ + offset, out);
  }
  void will_need(std::uint64_t offset, std::uint64_t length) const override {
    whole_->will_need(begin_ + offset, length);
  }
  void done_with(std::uint64_t offset, std::uint64_t length) const override {
    whole_->done_with(begin_ + offset, length);
  }

 private:
  SourcePtr whole_;
  std::uint64_t begin_;
};

std::uint64_t sum_lengths(const std::vector<StoredRange>& pieces) {
  std::uint64_t size = 0;
  for (const StoredRange& piece : pieces) size += piece.length;
  return size;
}

class SplicedSource final : public Source {
 public:
  SplicedSource(std::string name, std::vector<StoredRange> pieces)
      : Source(std::move(name), sum_lengths(pieces)), pieces_(std::move(pieces)) {}

  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (const StoredRange& piece : pieces_) {
      if (out.empty()) return;
      if (offset >= piece.length) {
        offset -= piece.length;
        continue;
      }
      const auto part = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), piece.length - offset)));
      piece.source->read(piece.offset + offset, part);
      out = out.subspan(part.size());
      offset = 0;
    }
    if (!out.empty()) throw Error(ErrorKind::internal, "read outside a spliced source", name());
  }

 private:
  std::vector<StoredRange> pieces_;  // only a few, so that a linear search is fast
};

}  // namespace

SourcePtr make_unmapped_source(SourcePtr whole) {
  return whole->descriptor() < 0 ? whole : std::make_shared<UnmappedSource>(std::move(whole));
}

SourcePtr make_source_part(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name) {
  return std::make_shared<SourcePart>(std::move(whole), begin, size, std::move(name));
}

SourcePtr make_spliced_source(std::string name, std::vector<StoredRange> pieces) {
  return std::make_shared<SplicedSource>(std::move(name), std::move(pieces));
}

}  // namespace poise
