#include <poise/hash.hpp>

#include <algorithm>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/ztensor/zt2.hpp"
#include "io/meter.hpp"
#include "ops/part_errors.hpp"
#include "pack/digest.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "pack/sha256_lanes.hpp"

namespace poise {
namespace {

struct Job {
  const Tensor* tensor;
  const Part* part;
  PartHash result;
};

// The digest that a file has for a part, which has to be true: what is printed names the bytes that were meant.
class Claim {
 public:
  explicit Claim(const Job& job) : job_(job) {
    const auto& digest = job.part->digest;
    if (!digest || !is_computable(digest->algorithm)) return;
    claimed_ = &*digest;
    if (const BlobPtr stored = digested_blob(job.part->blob, *claimed_); stored != job.part->blob) stored_ = stored;
    if (stored_ || claimed_->algorithm != DigestAlgorithm::sha256) hasher_ = make_hasher(claimed_->algorithm);
  }

  void update(std::span<const std::byte> bytes) const {
    if (hasher_ && !stored_) hasher_->update(bytes);
  }

  // Throws invalid_file. Requires: update() has seen all bytes, whose SHA-256 this is.
  void require(std::string_view sha256) const {
    if (claimed_ == nullptr) return;
    if (stored_) stream_chunks(*stored_, [&](std::span<const std::byte> bytes) { hasher_->update(bytes); });
    const std::string found = digest_text(claimed_->algorithm, hasher_ ? hasher_->finish() : std::string(sha256));
    if (same_digest(found, claimed_->text)) return;
    const auto at = job_.part->blob->location();
    throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", job_.tensor->name, job_.part->role, wrong_digest(found, *claimed_)),
                at ? at->source->name() : std::string(), at ? std::optional(at->offset) : std::nullopt);
  }

 private:
  const Job& job_;
  const Digest* claimed_ = nullptr;
  BlobPtr stored_;  // what a digest over stored bytes is of, where these are not the decoded ones
  std::unique_ptr<Hasher> hasher_;
};

std::vector<Job> jobs_of(const Model& model) {
  std::vector<Job> jobs;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) jobs.push_back({&tensor, &part, {tensor.name, part.role, {}}});
  }
  return jobs;
}

ModelHash hash_parts(const Model& model, const Progress& progress) {
  std::vector<Job> jobs = jobs_of(model);
  std::vector<std::uint64_t> sizes;
  sizes.reserve(jobs.size());
  for (const Job& job : jobs) sizes.push_back(job.part->blob->size());
  Meter meter(progress, std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  HashOrder order(sizes);
  // The parts side by side, each from front to back by one thread: a digest has no shortcut.
  sha256_on_all_threads(order, [&](const HashOrder::Item& item) -> std::optional<Sha256Message> {
    Job& job = jobs[item.index];
    const auto claim = std::make_shared<const Claim>(job);
    const auto look = [&, claim](std::span<const std::byte> bytes) {
      claim->update(bytes);
      meter.advance(bytes.size(), job.tensor->name);
    };
    const auto done = [&job, claim](std::string digest) {
      claim->require(digest);
      job.result.sha256 = std::move(digest);
    };
    if (const auto bytes = item.side_by_side(*job.part->blob)) return Sha256Message{*bytes, look, done};
    const auto hasher = make_sha256();
    stream_chunks(*job.part->blob, [&](std::span<const std::byte> bytes) {
      hasher->update(bytes);
      look(bytes);
    });
    done(hasher->finish());
    return std::nullopt;
  });
  std::ranges::sort(jobs, {}, [](const Job& job) { return std::pair(job.result.tensor, job.result.role); });
  ModelHash result;
  std::string lines;
  for (Job& job : jobs) {
    lines += fmt::format("{}  {}/{}\n", job.result.sha256, job.result.tensor, job.result.role);
    result.parts.push_back(std::move(job.result));
  }
  result.model = sha256_hex(std::as_bytes(std::span(lines)));
  if (model.origin.format == "zt-v2") result.content = ztensor::content_digest2(model);
  return result;
}

}  // namespace

ModelHash hash(const Model& model, const Progress& progress) {
  return naming_parts({&model}, [&] { return hash_parts(model, progress); });
}

}  // namespace poise
