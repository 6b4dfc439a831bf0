#include "model/unused_bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "io/file_descriptor.hpp"

namespace poise {
namespace {

// Returns the offset of the first byte that is not zero.
std::optional<std::uint64_t> find_first_nonzero(const SourcePtr& source, const FileRange& range) {
  constexpr std::uint64_t kPiece = 1 << 20;
  std::vector<std::byte> piece;
  for (std::uint64_t position = range.begin; position < range.end;) {
    const WrittenRange written = find_written_range(*source, position);
    const std::uint64_t end = std::min(written.end, range.end);
    for (position = written.begin; position < end; position += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, end - position)));
      source->read(position, piece);
      const auto at = std::ranges::find_if(piece, [](std::byte byte) { return byte != std::byte{0}; });
      if (at != piece.end()) return position + static_cast<std::uint64_t>(at - piece.begin());
    }
  }
  return std::nullopt;
}

// Returns true if the gap ends at a multiple of an alignment and is shorter than this alignment. A longer gap may have
// been a part, even if all its bytes are zero.
bool is_padding(const FileRange& gap, std::span<const std::uint64_t> alignments) {
  return std::ranges::any_of(
      alignments, [&](std::uint64_t alignment) { return gap.end % alignment == 0 && gap.end - gap.begin < alignment; });
}

void check_gap(const SourcePtr& source, const FileRange& gap, std::span<const std::uint64_t> alignments,
               std::vector<Finding>& findings) {
  if (!is_padding(gap, alignments)) {
    findings.push_back({Severity::warning,
                        gap.end - gap.begin == 1
                            ? "no entry of the file refers to this byte"
                            : fmt::format("no entry of the file refers to these {} bytes", gap.end - gap.begin),
                        source->name(), gap.begin});
  } else if (const auto offset = find_first_nonzero(source, gap)) {
    const std::uint64_t next_place = (gap.begin + alignments.front() - 1) / alignments.front() * alignments.front();
    findings.push_back({Severity::warning,
                        *offset >= next_place ? "no entry of the file refers to these bytes, which are not zero"
                                              : "the padding is not zero",
                        source->name(), offset});
  }
}

}  // namespace

std::vector<FileRange> list_part_ranges(const Model& model, const Source& source) {
  std::vector<FileRange> ranges;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) {
      if (const auto at = part.blob->stored(); at && at->source.get() == &source)
        ranges.push_back({at->offset, at->offset + at->length});
    }
  }
  return ranges;
}

void find_unused_bytes(const SourcePtr& source, std::vector<FileRange> known, std::span<const std::uint64_t> alignments,
                       std::vector<Finding>& findings) {
  for (const FileRange& gap : find_gaps(std::move(known))) check_gap(source, gap, alignments, findings);
}

}  // namespace poise
