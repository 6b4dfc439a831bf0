#include <poise/hash.hpp>

#include <algorithm>
#include <mutex>
#include <numeric>

#include <fmt/format.h>

#include "formats/ztensor/zt2.hpp"
#include "io/digest.hpp"
#include "io/meter.hpp"
#include "io/pump.hpp"
#include "io/sha256_lanes.hpp"

namespace poise {
namespace {

struct Job {
  const Tensor* tensor;
  const Part* part;
  PartHash result;
};

std::vector<Job> jobs_of(const Model& model) {
  std::vector<Job> jobs;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) jobs.push_back({&tensor, &part, {tensor.name, part.role, {}}});
  }
  return jobs;
}

}  // namespace

ModelHash hash(const Model& model, const Progress& progress) {
  std::vector<Job> jobs = jobs_of(model);
  std::vector<std::uint64_t> sizes;
  sizes.reserve(jobs.size());
  for (const Job& job : jobs) sizes.push_back(job.part->blob->size());
  Meter meter(progress, std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  std::mutex meter_mutex;
  HashOrder order(sizes);
  // The parts side by side, each from front to back by one thread: a digest has no shortcut.
  sha256_on_all_threads(order, [&](const HashOrder::Item& item) -> std::optional<Sha256Message> {
    Job& job = jobs[item.index];
    const auto advance = [&](std::span<const std::byte> bytes) {
      const std::lock_guard lock(meter_mutex);
      meter.advance(bytes.size(), job.tensor->name);
    };
    if (const auto bytes = item.side_by_side(*job.part->blob)) {
      return Sha256Message{*bytes, advance, [&job](std::string digest) { job.result.sha256 = std::move(digest); }};
    }
    const auto hasher = make_sha256();
    stream_chunks(*job.part->blob, [&](std::span<const std::byte> bytes) {
      hasher->update(bytes);
      advance(bytes);
    });
    job.result.sha256 = hasher->finish();
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

}  // namespace poise
