#include "io/spliced_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <poise/error.hpp>

namespace poise {
namespace {

std::uint64_t size_of(const std::vector<StoredRange>& pieces) {
  std::uint64_t size = 0;
  for (const StoredRange& piece : pieces) size += piece.length;
  return size;
}

class SplicedSource final : public Source {
 public:
  SplicedSource(std::string name, std::vector<StoredRange> pieces)
      : Source(std::move(name), size_of(pieces)), pieces_(std::move(pieces)) {}

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
  std::vector<StoredRange> pieces_;  // a few
};

}  // namespace

SourcePtr make_spliced_source(std::string name, std::vector<StoredRange> pieces) {
  return std::make_shared<SplicedSource>(std::move(name), std::move(pieces));
}

}  // namespace poise
