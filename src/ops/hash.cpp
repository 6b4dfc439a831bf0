#include <poise/hash.hpp>

#include <algorithm>
#include <mutex>

#include <oneapi/tbb/parallel_for_each.h>

#include <fmt/format.h>

#include "formats/ztensor/zt2.hpp"
#include "io/digest.hpp"
#include "io/meter.hpp"
#include "io/pump.hpp"

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
  std::uint64_t total = 0;
  for (const Job& job : jobs) total += job.part->blob->size();
  Meter meter(progress, total);
  std::mutex meter_mutex;
  // The parts side by side, each from front to back by one thread: a digest has no shortcut.
  oneapi::tbb::parallel_for_each(jobs, [&](Job& job) {
    const auto hasher = make_sha256();
    stream_chunks(*job.part->blob, [&](std::span<const std::byte> bytes) {
      hasher->update(bytes);
      const std::lock_guard lock(meter_mutex);
      meter.advance(bytes.size(), job.tensor->name);
    });
    job.result.sha256 = hasher->finish();
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
