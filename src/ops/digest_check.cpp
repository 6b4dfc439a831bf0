#include "ops/digest_check.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "io/extents.hpp"
#include "ops/ranks.hpp"
#include "ops/shared_bytes.hpp"
#include "pack/part_digest.hpp"

namespace poise {

// Checks the digest of one item while a Scan reads its bytes.
class DigestCheck::ItemCheck final : public Visitor {
 public:
  static Visit make_visit(DigestCheck& all, std::size_t index) {
    auto check = std::make_unique<ItemCheck>(all, index);
    const bool sha256 = check->claim_.needs_sha256();
    return {all.items_[index].blob, sha256, std::move(check)};
  }
  ItemCheck(DigestCheck& all, std::size_t index)
      : all_(all), index_(index), claim_(all.items_[index].blob, all.items_[index].digest()) {}

  void update(std::span<const std::byte> bytes) override { claim_.update(bytes); }

  void end(std::string sha256) override {
    const auto problem = claim_.find_mismatch(std::move(sha256));
    if (!problem) return;
    const Item& item = all_.items_[index_];
    const Place place = find_place(*item.blob);
    all_.record_failure(index_, Error(ErrorKind::invalid_file, fmt::format("{}: {}", item.describe(), *problem),
                                      place.path, place.offset));
  }

  void fail(const Error& error) override {
    // The other code, which reads the same bytes, reports data that are missing or that Poise does not support.
    if (error.kind() == ErrorKind::not_found || error.kind() == ErrorKind::unsupported) return;
    all_.record_failure(index_,
                        Error(error.kind(), fmt::format("{}: {}", all_.items_[index_].describe(), error.message()),
                              error.path(), error.offset()));
  }

 private:
  DigestCheck& all_;
  std::size_t index_;
  DigestClaim claim_;
};

DigestCheck::DigestCheck(const std::vector<const Model*>& models, const Wanted& is_wanted, const Communicator* ranks) {
  for (const Model* model : models) add_items(*model, is_wanted);
  if (ranks != nullptr) keep_own_items(*ranks);
  make_batches();
}

std::string DigestCheck::Item::describe() const {
  return fmt::format("tensor {}: {}{}", tensor->name, part->role, file != nullptr ? ": " + file->what : std::string());
}

void DigestCheck::add_items(const Model& model, const Wanted& is_wanted) {
  std::set<DigestedBytes> seen;
  std::set<const Source*> stamped;
  const auto note_unknown = [&](const Digest& digest, const auto& describe) {
    if (digest.algorithm == DigestAlgorithm::unknown && unchecked_++ == 0)
      first_unchecked_ = fmt::format("{}: the digest {}", describe(), digest.text);
  };
  const auto add_item = [&](Item item) {
    const auto at = item.part->blob->stored();
    if (at && stamped.insert(at->source.get()).second) stamps_.emplace_back(at->source);
    bytes_ = saturating_add(bytes_, item.blob->size());
    items_.push_back(std::move(item));
  };
  for (const Tensor& tensor : model.tensors()) {
    if (!is_wanted(tensor)) continue;
    for (const Part& part : tensor.parts) {
      if (!part.digest) continue;
      if (part.digest->algorithm == DigestAlgorithm::unknown) {
        note_unknown(*part.digest, [&] { return fmt::format("tensor {}: {}", tensor.name, part.role); });
      }
      if (!is_computable(part.digest->algorithm)) continue;
      if (part.blob->stored() && !seen.emplace(part).second) continue;
      add_item({&tensor, &part, find_digested_blob(part.blob, *part.digest), nullptr});
    }
  }
  for (const FileClaim& claim : find_file_claims(model, is_wanted)) {
    note_unknown(claim.file->digest, [&] { return claim.file->what; });
    if (is_computable(claim.file->digest.algorithm)) add_item({claim.tensor, claim.part, claim.bytes, claim.file});
  }
}

void DigestCheck::keep_own_items(const Communicator& ranks) {
  std::vector<std::uint64_t> sizes;
  for (const Item& item : items_) sizes.push_back(item.blob->size());
  const std::vector<std::size_t> dealt = assign_to_ranks(sizes, ranks.size());
  std::vector<Item> own;
  bytes_ = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (dealt[i] != ranks.rank()) continue;
    bytes_ = saturating_add(bytes_, sizes[i]);
    own.push_back(std::move(items_[i]));
  }
  items_ = std::move(own);
}

void DigestCheck::make_batches() {
  const std::uint64_t most = Scan::kBatchBytes;
  std::uint64_t begin = 0;
  for (std::size_t first = 0, last = 0; first < items_.size(); first = last) {
    std::vector<std::uint64_t> sizes;
    std::uint64_t bytes = 0;
    for (; last < items_.size() && (bytes == 0 || items_[last].blob->size() <= most - std::min(most, bytes)); ++last) {
      bytes = saturating_add(bytes, sizes.emplace_back(items_[last].blob->size()));
    }
    batches_.emplace_back(begin, sizes,
                          [this, first](std::size_t index) { return ItemCheck::make_visit(*this, first + index); });
    begin = saturating_add(begin, bytes);
  }
}

Progress DigestCheck::make_tracking_progress(Progress progress) {
  start_batch_if_due(0);
  return [this, progress = std::move(progress)](const ProgressEvent& event) {
    start_batch_if_due(event.total == 0 ? 1 : static_cast<double>(event.done) / static_cast<double>(event.total));
    return !failed_ && (!progress || progress(event));
  };
}

void DigestCheck::start_batch_if_due(double share) {
  if (started_ > 0 && batches_[started_ - 1].scan.has_failed()) failed_ = true;  // finish_batch() throws its error
  if (failed_ || started_ == batches_.size() || (started_ > 0 && batches_[started_ - 1].scan.is_busy())) return;
  const std::uint64_t before = started_ == 0 ? 0 : batches_[started_ - 1].begin;
  if (static_cast<double>(before) <= share * static_cast<double>(bytes_)) start_batch();
}

void DigestCheck::finish() {
  finish_batch();
  while (started_ < batches_.size()) {
    start_batch();
    finish_batch();
  }
  for (const FileStamp& stamp : stamps_) stamp.require_unchanged();
}

void DigestCheck::finish_batch() {
  if (started_ > 0) batches_[started_ - 1].scan.finish();  // the calling thread helps
  if (failure_) throw Error(*failure_);
}

void DigestCheck::record_failure(std::size_t index, const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (failure_ && failed_item_ < index) return;
  failed_item_ = index;
  failure_.emplace(error);
  failed_ = true;
}

std::optional<Finding> DigestCheck::find_unchecked() const {
  if (unchecked_ == 0) return std::nullopt;
  const std::string more = unchecked_ == 1 ? "" : fmt::format(" (and {} more)", unchecked_ - 1);
  return Finding{Severity::warning,
                 fmt::format("{}{} is of a kind that Poise cannot compute; it was not checked", first_unchecked_, more),
                 {},
                 {}};
}

std::vector<FileClaim> find_file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted) {
  std::vector<FileClaim> claims;
  if (model.origin.file_digests.empty()) return claims;
  std::map<std::string, FileClaim> undigested;  // the claims by path
  for (const Tensor& tensor : model.tensors()) {
    if (!is_wanted(tensor)) continue;
    for (const Part& part : tensor.parts) {
      if (part.digest && is_computable(part.digest->algorithm)) continue;
      const auto at = part.blob->stored();
      if (!at) continue;
      FileClaim& claim = undigested[at->source->name()];
      if (claim.part == nullptr) claim = {nullptr, &tensor, &part, make_source_blob(at->source, 0, at->source->size())};
    }
  }
  for (const FileDigest& file : model.origin.file_digests) {
    const auto found = undigested.find(file.path);
    if (found == undigested.end()) continue;
    found->second.file = &file;
    claims.push_back(found->second);
  }
  return claims;
}

}  // namespace poise
