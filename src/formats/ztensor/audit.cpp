#include "formats/ztensor/audit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/pump.hpp"
#include "tensor/part_digest.hpp"

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
  std::optional<std::uint64_t> found;
  std::uint64_t position = range.begin;
  const BlobPtr gap = make_source_blob(source, range.begin, range.end - range.begin);
  stream_chunks(*gap, [&](std::span<const std::byte> bytes) {
    const auto at = std::ranges::find_if(bytes, [](std::byte byte) { return byte != std::byte{0}; });
    if (!found && at != bytes.end()) found = position + static_cast<std::uint64_t>(at - bytes.begin());
    position += bytes.size();
  });
  return found;
}

// The bytes between what is known: padding has to be zero, and is shorter than `most_padding`.
void audit_gaps(const SourcePtr& source, std::vector<Range> known, std::uint64_t most_padding, std::vector<Finding>& findings) {
  std::ranges::sort(known);
  std::uint64_t position = 0;
  for (const Range& range : known) {
    if (range.begin > position) {
      const Range gap{position, range.begin};
      const std::uint64_t length = gap.end - gap.begin;
      if (length >= most_padding) {
        findings.push_back({false, fmt::format("nothing refers to the {} bytes here", length), source->name(), gap.begin});
      } else if (const auto offset = first_nonzero(source, gap)) {
        findings.push_back({false, "the padding is not zero", source->name(), offset});
      }
    }
    position = std::max(position, range.end);
  }
}

// The alignment of version 2's blobs is not stored, but seen.
std::uint64_t observed_alignment(const std::vector<Range>& blobs) {
  std::uint64_t offsets = 0;
  for (const Range& blob : blobs) offsets |= blob.begin;
  return offsets == 0 ? kCanonicalAlignment2 : std::max(kCanonicalAlignment2, offsets & (~offsets + 1));
}

std::string whole_digest(const SourcePtr& source, DigestAlgorithm algorithm) {
  const auto hasher = make_hasher(algorithm);
  const BlobPtr all = make_source_blob(source, 0, source->size());
  stream_chunks(*all, [&](std::span<const std::byte> bytes) { hasher->update(bytes); });
  return digest_text(algorithm, hasher->finish());
}

// Shards are the files that the manifest means when they have the size (checked on opening) and the digest it says.
void audit_shards(const Input& input, const Manifest2& manifest, std::vector<Finding>& findings) {
  for (const Shard& shard : manifest.shards) {
    const auto path = shard_path(input.path, shard.name);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    const DigestAlgorithm algorithm = digest_algorithm(shard.digest);
    if (algorithm != DigestAlgorithm::xxh3 && algorithm != DigestAlgorithm::sha256) {
      findings.push_back({false,
                          fmt::format("shard {}: the digest {} is of no kind that Poise can compute; it was not checked", shard.name, shard.digest),
                          path.string(),
                          {}});
      continue;
    }
    const IoMode io = input.source->mapped() ? IoMode::map : IoMode::read;  // as the main file was opened
    const std::string found = whole_digest(Source::open(path, io), algorithm);
    if (found != shard.digest)
      findings.push_back({true, fmt::format("shard {}: the digest is {}, the manifest says {}", shard.name, found, shard.digest), path.string(), {}});
  }
}

}  // namespace

std::vector<FileDigest> shard_digests(const Model& model) {
  std::vector<FileDigest> digests;
  const SourcePtr source = Source::open(model.origin.path, IoMode::read);
  const Manifest2 manifest = parse_manifest2(*source, find_manifest2(*source));
  for (const Shard& shard : manifest.shards) {
    std::string path = shard_path(model.origin.path, shard.name).string();
    digests.push_back({std::move(path), "shard " + shard.name, {digest_algorithm(shard.digest), shard.digest, true}});
  }
  return digests;
}

std::vector<Finding> audit_version_1(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  std::vector<Range> known = referenced(model, *input.source);
  known.push_back({0, kMagic1.size()});
  known.push_back({manifest_begin1(*input.source), input.source->size()});
  audit_gaps(input.source, std::move(known), kAlignment1, findings);
  return findings;
}

std::vector<Finding> audit_version_2(const Input& input, const Model& model) {
  std::vector<Finding> findings;
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0) return findings;
  std::vector<Range> known = referenced(model, *input.source);
  known.push_back({range.begin, range.end});
  const std::uint64_t alignment = observed_alignment(known);
  known.push_back({0, kMagic2.size()});
  known.push_back({input.source->size() - kFooterBytes2, input.source->size()});
  audit_gaps(input.source, std::move(known), alignment, findings);
  audit_shards(input, parse_manifest2(*input.source, range), findings);
  return findings;
}

}  // namespace poise::ztensor
