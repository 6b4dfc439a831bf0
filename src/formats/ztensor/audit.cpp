#include "formats/ztensor/edit.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/source_range.hpp"
#include "model/card.hpp"
#include "model/unused_bytes.hpp"

namespace poise::ztensor {
namespace {

// Returns the largest power of two that divides the offsets of all blobs, because a file does not state the writer's
// alignment. Ignores the manifest, which an edit may have moved, if there are blobs.
std::uint64_t guess_alignment(const std::vector<FileRange>& blobs, const ManifestRange& manifest) {
  std::uint64_t offsets = blobs.empty() ? manifest.begin : 0;
  for (const FileRange& blob : blobs) offsets |= blob.begin;
  return offsets & (~offsets + 1);
}

// Warns of reserved bytes that are not 0: readers ignore them, and a later version may give them a meaning.
void warn_of_reserved_bytes(const SourcePtr& source, std::vector<Finding>& findings) {
  constexpr std::uint64_t kBehind = 12;  // bytes of the reserved field and the magic number, which end the file
  ByteReader reader(*source, "zt 2");
  reader.seek(source->size() - kBehind);
  const std::uint32_t reserved = reader.read_u32("reserved");
  if (reserved != 0)
    findings.push_back({Severity::warning,
                        fmt::format("footer: reserved: expected 0, found {}; it is ignored", reserved), source->name(),
                        source->size() - kBehind});
}

// Adds the older manifests and footers, which remain in the file because each edit appends new ones.
void add_older_manifests(const SourcePtr& source, ManifestRange manifest, std::vector<FileRange>& known) {
  while (manifest.begin > kLeastAlignment2) {
    std::vector<std::byte> before(kLeastAlignment2);  // an older footer may end here, before zeros
    source->read(manifest.begin - before.size(), before);
    const auto last = std::find_if(before.rbegin(), before.rend(), [](std::byte byte) { return byte != std::byte{0}; });
    const std::uint64_t end = manifest.begin - static_cast<std::uint64_t>(last - before.rbegin());
    try {
      const SourcePtr old = make_spliced_source(source->name(), {{source, 0, end}});
      manifest = find_manifest2(*old);
      parse_manifest2(*old, manifest);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      return;  // these bytes are not a footer
    }
    known.push_back({manifest.begin, manifest.end});
    known.push_back({end - kFooterBytes2, end});
  }
}

}  // namespace

std::vector<Finding> audit_version_1(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  std::vector<FileRange> known = list_part_ranges(model, *input.source);
  known.push_back({0, kMagic1.size()});
  known.push_back({find_manifest_begin1(*input.source), input.source->size()});
  find_unused_bytes(input.source, std::move(known), std::array{kAlignment1}, findings);
  warn_of_unknown_types(
      model, [](std::string_view layout) { return layout == kAffineLayout; }, findings);
  return findings;
}

std::vector<Finding> audit_version_2(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  const ManifestRange range = find_manifest2(*input.source);
  warn_of_reserved_bytes(input.source, findings);
  if (range.end == 0) return findings;
  std::vector<FileRange> known = list_part_ranges(model, *input.source);
  const std::uint64_t alignment = guess_alignment(known, range);
  known.push_back({range.begin, range.end});
  known.push_back({0, kMagic2.size()});
  known.push_back({input.source->size() - kFooterBytes2, input.source->size()});
  add_older_manifests(input.source, range, known);
  // Every blob has the first alignment. Writers and edits use the others.
  find_unused_bytes(input.source, std::move(known),
                    std::array{kLeastAlignment2, alignment, kCanonicalAlignment2, kFooterBlock2}, findings);
  warn_of_unknown_types(model, is_known_layout2, findings);
  return findings;
}

}  // namespace poise::ztensor
