#include "pack/part_digest.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "pack/pump.hpp"

namespace poise {
namespace {

constexpr std::array kAlgorithms = {DigestAlgorithm::sha256, DigestAlgorithm::crc32c, DigestAlgorithm::xxh3};

}  // namespace

std::string_view find_digest_name(DigestAlgorithm algorithm) {
  const std::string_view begin = find_digest_spelling(algorithm).begin;
  return begin.substr(0, begin.find(':'));
}

DigestAlgorithm parse_digest_algorithm(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto* found = std::ranges::find(kAlgorithms, name, find_digest_name);
  return found == kAlgorithms.end() || name.size() == text.size() ? DigestAlgorithm::unknown : *found;
}

bool is_computable(DigestAlgorithm algorithm) { return !find_digest_name(algorithm).empty(); }

bool covers_content(const Blob& blob, const Digest& digest) {
  return !digest.over_stored || blob.raw_range() || !blob.stored();
}

BlobPtr find_digested_blob(const BlobPtr& blob, const Digest& digest) {
  if (covers_content(*blob, digest)) return blob;
  const Stored stored = blob->stored().value();
  return make_source_blob(stored.source, stored.offset, stored.length);
}

std::unique_ptr<Hasher> make_hasher(DigestAlgorithm algorithm) {
  switch (algorithm) {
    case DigestAlgorithm::none: return nullptr;
    case DigestAlgorithm::sha256: return make_sha256();
    case DigestAlgorithm::crc32c: return make_crc32c();
    case DigestAlgorithm::xxh3: return make_xxh3();
    case DigestAlgorithm::unknown: break;
  }
  throw Error(ErrorKind::internal, "an unknown digest cannot be computed");
}

std::string format_digest(DigestAlgorithm algorithm, std::string digits) {
  if (algorithm == DigestAlgorithm::crc32c)
    std::ranges::transform(digits, digits.begin(), [](char c) { return to_upper_ascii(c); });
  return digits.insert(0, find_digest_spelling(algorithm).begin);
}

bool is_same_digest(std::string_view a, std::string_view b) { return to_lower_ascii(a) == to_lower_ascii(b); }

DigestClaim::DigestClaim(const BlobPtr& blob, Digest digest) : digest_(std::move(digest)) {
  if (BlobPtr digested = find_digested_blob(blob, digest_); digested != blob) stored_ = std::move(digested);
  if (!needs_sha256()) hasher_ = make_hasher(digest_.algorithm);
}

void DigestClaim::update(std::span<const std::byte> bytes) {
  if (hasher_ && !stored_) hasher_->update(bytes);
}

std::optional<std::string> DigestClaim::find_mismatch(std::string sha256) {
  if (stored_) stream_chunks(*stored_, [this](std::span<const std::byte> bytes) { hasher_->update(bytes); });
  const std::string found = format_digest(digest_.algorithm, hasher_ ? hasher_->finish() : std::move(sha256));
  if (is_same_digest(found, digest_.text)) return std::nullopt;
  return fmt::format("the digest is {}, the file states {}", found, digest_.text);
}

}  // namespace poise
