#include "ops/digest_check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"

namespace poise {
namespace {

// So much is read twice at short intervals, and should stay in the page cache. Lanes want many items.
std::uint64_t batch_bytes() { return HashOrder::has_lanes() ? 1 << 30 : 256 << 20; }

}  // namespace

DigestCheck::DigestCheck(const std::vector<const Model*>& models, const Wanted& is_wanted) {
  for (const Model* model : models) add(*model, is_wanted);
  make_batches();
}

DigestCheck::~DigestCheck() {
  given_up_ = true;
  for (Batch& batch : batches_) batch.order.end();
  try {
    tasks_.wait();
  } catch (...) {  // the caller has an error of its own
  }
}

std::string DigestCheck::Item::where() const {
  return fmt::format("tensor {}: {}{}", tensor->name, part->role, file != nullptr ? ": " + file->what : std::string());
}

void DigestCheck::add(const Model& model, const Wanted& is_wanted) {
  // All that the outcome depends on: many tensors may share one blob.
  std::set<std::tuple<const Source*, std::uint64_t, std::uint64_t, std::uint64_t, bool, bool, std::string_view>> seen;
  std::set<const Source*> stamped;
  std::map<std::string, Item> undigested;  // the first part in a file that has no digest of its own, by path
  const auto note_unknown = [&](const Digest& digest, const auto& where) {
    if (digest.algorithm == DigestAlgorithm::unknown && unchecked_++ == 0) first_unchecked_ = fmt::format("{}: the digest {}", where(), digest.text);
  };
  const auto add_item = [&](Item item) {
    const auto at = item.part->blob->location();
    if (at && stamped.insert(at->source.get()).second) stamps_.emplace_back(at->source);
    bytes_ = saturating_add(bytes_, item.blob->size());
    items_.push_back(std::move(item));
  };
  for (const Tensor& tensor : model.tensors()) {
    if (!is_wanted(tensor)) continue;
    for (const Part& part : tensor.parts) {
      const auto at = part.blob->location();
      if (part.digest) note_unknown(*part.digest, [&] { return fmt::format("tensor {}: {}", tensor.name, part.role); });
      if (!part.digest || !is_computable(part.digest->algorithm)) {
        if (at) undigested.try_emplace(at->source->name(), Item{&tensor, &part, make_source_blob(at->source, 0, at->source->size()), nullptr});
        continue;
      }
      const Digest& digest = *part.digest;
      if (at && !seen.emplace(at->source.get(), at->offset, at->length, part.blob->size(), at->encoding == "raw", digest.over_stored, digest.text).second) {
        continue;
      }
      add_item({&tensor, &part, digested_blob(part.blob, *part.digest), nullptr});
    }
  }
  if (undigested.empty()) return;
  for (const FileDigest& file : model.origin.file_digests) {
    const auto found = undigested.find(file.path);
    if (found == undigested.end()) continue;
    note_unknown(file.digest, [&] { return file.what; });
    if (!is_computable(file.digest.algorithm)) continue;
    found->second.file = &file;
    add_item(found->second);
  }
}

void DigestCheck::make_batches() {
  const std::uint64_t most = batch_bytes();
  std::uint64_t begin = 0;
  for (std::size_t first = 0, last = 0; first < items_.size(); first = last) {
    std::vector<std::uint64_t> sizes;
    std::uint64_t bytes = 0;
    for (; last < items_.size() && (bytes == 0 || items_[last].blob->size() <= most - std::min(most, bytes)); ++last) {
      bytes = saturating_add(bytes, sizes.emplace_back(items_[last].blob->size()));
    }
    batches_.emplace_back(first, begin, sizes);
    begin = saturating_add(begin, bytes);
  }
}

Progress DigestCheck::beside(Progress progress) {
  advance(0);
  return [this, progress = std::move(progress)](const ProgressEvent& event) {
    advance(event.total == 0 ? 1 : static_cast<double>(event.done) / static_cast<double>(event.total));
    return !failed_ && (!progress || progress(event));
  };
}

void DigestCheck::advance(double share) {
  if (started_ == batches_.size() || busy_ > 0) return;
  const std::uint64_t before = started_ == 0 ? 0 : batches_[started_ - 1].begin;
  if (static_cast<double>(before) <= share * static_cast<double>(bytes_)) start_batch();
}

void DigestCheck::start_batch() {
  Batch& batch = batches_[started_++];
  busy_ += batch.order.threads();
  for (std::size_t thread = 0; thread < batch.order.threads(); ++thread) {
    tasks_.run([this, &batch] {
      sha256_share(batch.order, [&](const HashOrder::Item& turn) { return check(turn, batch.first + turn.index); });
      --busy_;
    });
  }
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
  tasks_.wait();  // the calling thread helps
  if (failure_) throw Error(*failure_);
}

// Checks an item, or gives it to be hashed side by side with others.
std::optional<Sha256Message> DigestCheck::check(const HashOrder::Item& turn, std::size_t index) {
  const Item& item = items_[index];
  try {
    if (item.digest().algorithm == DigestAlgorithm::sha256) {
      if (const auto bytes = turn.side_by_side(*item.blob)) {
        return Sha256Message{*bytes, [this](std::span<const std::byte>) { go_on(); }, [this, index](std::string digits) { compare(index, std::move(digits)); }};
      }
    }
    const auto hasher = make_hasher(item.digest().algorithm);
    stream_chunks(*item.blob, [&](std::span<const std::byte> bytes) {
      go_on();
      hasher->update(bytes);
    });
    compare(index, hasher->finish());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    // What is not here or not known cannot be read by the others, either; they say so.
    if (error.kind() == ErrorKind::not_found || error.kind() == ErrorKind::unsupported) return std::nullopt;
    fail(index, Error(error.kind(), fmt::format("{}: {}", item.where(), error.message()), error.path(), error.offset()));
  }
  return std::nullopt;
}

void DigestCheck::compare(std::size_t index, std::string digits) {
  const Item& item = items_[index];
  const std::string found = digest_text(item.digest().algorithm, std::move(digits));
  if (same_digest(found, item.digest().text)) return;
  const auto at = item.blob->location();
  fail(index, Error(ErrorKind::invalid_file, fmt::format("{}: {}", item.where(), wrong_digest(found, item.digest())), at ? at->source->name() : std::string(),
                    at ? std::optional(at->offset) : std::nullopt));
}

void DigestCheck::fail(std::size_t index, const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (failure_ && failed_item_ < index) return;
  failed_item_ = index;
  failure_.emplace(error);
  failed_ = true;
}

void DigestCheck::go_on() const {
  if (given_up_) throw Error(ErrorKind::cancelled, "cancelled");
}

std::optional<Finding> DigestCheck::unchecked() const {
  if (unchecked_ == 0) return std::nullopt;
  const std::string more = unchecked_ == 1 ? "" : fmt::format(" (and {} more)", unchecked_ - 1);
  return Finding{Severity::warning, fmt::format("{}{} is of no kind that Poise can compute; it was not checked", first_unchecked_, more), {}, {}};
}

}  // namespace poise
