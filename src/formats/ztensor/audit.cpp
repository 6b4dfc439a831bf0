#include "formats/ztensor/audit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/holes.hpp"
#include "io/source_range.hpp"

namespace poise::ztensor {
namespace {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const Range&, const Range&) = default;
};

// The ranges of one file that its tensors refer to.
std::vector<Range> referenced(const Model& model, const Source& source) {
  std::vector<Range> ranges;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) {
      if (const auto at = part.blob->location(); at && at->source.get() == &source) ranges.push_back({at->offset, at->offset + at->length});
    }
  }
  return ranges;
}

std::optional<std::uint64_t> first_nonzero(const SourcePtr& source, const Range& range) {
  constexpr std::uint64_t kPiece = 1 << 20;
  std::vector<std::byte> piece;
  for (std::uint64_t position = range.begin; position < range.end;) {
    const Written written = next_written(*source, position);
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

// What writers align to; the first is what the format asks of every blob.
using Alignments = std::vector<std::uint64_t>;

// Only zero bytes up to the next multiple are padding. Anything more may have been a blob, even where all of it is zero.
bool is_padding(const Range& gap, const Alignments& alignments) {
  return std::ranges::any_of(alignments, [&](std::uint64_t alignment) { return gap.end % alignment == 0 && gap.end - gap.begin < alignment; });
}

void audit_gap(const SourcePtr& source, const Range& gap, const Alignments& alignments, std::vector<Finding>& findings) {
  if (!is_padding(gap, alignments)) {
    findings.push_back({Severity::warning, fmt::format("nothing refers to the {} bytes here", gap.end - gap.begin), source->name(), gap.begin});
  } else if (const auto offset = first_nonzero(source, gap)) {
    const std::uint64_t next_place = (gap.begin + alignments.front() - 1) / alignments.front() * alignments.front();
    findings.push_back({Severity::warning, *offset >= next_place ? "nothing refers to the bytes here, which are not zero" : "the padding is not zero",
                        source->name(), offset});
  }
}

void audit_gaps(const SourcePtr& source, std::vector<Range> known, const Alignments& alignments, std::vector<Finding>& findings) {
  std::ranges::sort(known);
  std::uint64_t position = 0;
  for (const Range& range : known) {
    if (range.begin > position) audit_gap(source, {position, range.begin}, alignments, findings);
    position = std::max(position, range.end);
  }
}

// The alignment that a writer of version 2 chose is not stored, but seen: in the blobs, for an edit may have put the manifest elsewhere.
std::uint64_t observed_alignment(const std::vector<Range>& blobs, const ManifestRange& manifest) {
  std::uint64_t offsets = blobs.empty() ? manifest.begin : 0;
  for (const Range& blob : blobs) offsets |= blob.begin;
  return offsets & (~offsets + 1);
}

// Tells of layouts and types that Poise does not know.
void audit_unknown(const Model& model, bool (*is_known_layout)(std::string_view), std::vector<Finding>& findings) {
  const auto tell = [&](std::string what, const Part* part) {
    const auto at = part == nullptr ? std::nullopt : part->blob->location();
    findings.push_back({Severity::warning, fmt::format("{} is not known to this version of Poise: its elements were not checked", what),
                        at ? at->source->name() : model.origin.path.string(), at ? std::optional(at->offset) : std::nullopt});
  };
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout == Layout::other && !is_known_layout(tensor.layout_name))
      tell(fmt::format("tensor {}: the layout \"{}\"", tensor.name, tensor.layout_name), tensor.parts.empty() ? nullptr : &tensor.parts.front());
    for (const Part& part : tensor.parts) {
      if (part.dtype == DType::unknown) tell(fmt::format("tensor {}: {}: the type \"{}\"", tensor.name, part.role, part.dtype_name), &part);
    }
  }
}

// Readers ignore it. A later version may give it a meaning, which is not known here.
void audit_reserved(const SourcePtr& source, std::vector<Finding>& findings) {
  constexpr std::uint64_t kBehind = 12;  // the magic, too
  const SourceRange range(*source);
  ByteReader reader(range, "zt 2");
  reader.seek(source->size() - kBehind);
  const std::uint32_t reserved = reader.u32("reserved");
  if (reserved != 0)
    findings.push_back(
        {Severity::warning, fmt::format("footer: reserved: expected 0, found {}; it is ignored", reserved), source->name(), source->size() - kBehind});
}

}  // namespace

std::vector<Finding> audit_version_1(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  std::vector<Range> known = referenced(model, *input.source);
  known.push_back({0, kMagic1.size()});
  known.push_back({manifest_begin1(*input.source), input.source->size()});
  audit_gaps(input.source, std::move(known), {kAlignment1}, findings);
  audit_unknown(
      model, [](std::string_view layout) { return layout == kAffineLayout; }, findings);
  return findings;
}

std::vector<Finding> audit_version_2(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  const ManifestRange range = find_manifest2(*input.source);
  audit_reserved(input.source, findings);
  if (range.end == 0) return findings;
  std::vector<Range> known = referenced(model, *input.source);
  const std::uint64_t alignment = observed_alignment(known, range);
  known.push_back({range.begin, range.end});
  known.push_back({0, kMagic2.size()});
  known.push_back({input.source->size() - kFooterBytes2, input.source->size()});
  audit_gaps(input.source, std::move(known), {kLeastAlignment2, alignment, kCanonicalAlignment2, kFooterBlock2}, findings);
  audit_unknown(model, is_known_layout2, findings);
  return findings;
}

}  // namespace poise::ztensor
