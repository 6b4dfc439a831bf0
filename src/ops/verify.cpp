#include <poise/verify.hpp>

#include <algorithm>
#include <mutex>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/meter.hpp"
#include "io/pump.hpp"
#include "model/check.hpp"
#include "ops/verify_affine.hpp"
#include "tensor/scan.hpp"

namespace poise {
namespace {

using Severity = Fault::Severity;

bool is_about_the_file(const Error& error) { return error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported; }

Fault fault_from(const Error& error, std::string_view where = {}) {
  return {Severity::error, where.empty() ? error.message() : fmt::format("{}: {}", where, error.message()), error.path(), error.offset()};
}

// Where element bytes stand in a file, for parts that are stored as they are.
struct Place {
  std::string path;
  std::optional<std::uint64_t> offset;
};

Place place_of(const Part& part, std::uint64_t byte) {
  const auto at = part.blob->location();
  if (!at) return {};
  if (at->encoding != "raw") return {at->source->name(), at->offset};
  return {at->source->name(), at->offset + byte};
}

class PartCheck {
 public:
  PartCheck(const Tensor& tensor, const Part& part) : part_(part), where_(fmt::format("tensor {}: {}", tensor.name, part.role)) {}

  template <typename Advance>
  void run(Advance&& advance) {
    try {
      stream_chunks(*part_.blob, [&](std::span<const std::byte> bytes) {
        look_at(bytes);
        advance(bytes.size());
      });
    } catch (const Error& error) {
      if (!is_about_the_file(error)) throw;
      faults_.push_back(fault_from(error, where_));
    }
    if (bad_values_ > 1) faults_.front().message += fmt::format(", and {} more are", bad_values_ - 1);
  }

  std::vector<Fault> take() { return std::move(faults_); }

 private:
  void look_at(std::span<const std::byte> bytes) {
    const BadValues bad = find_bad_values(part_.dtype, bytes);
    if (bad.count > 0 && bad_values_ == 0) report_value(bad.first);
    bad_values_ += bad.count;
    position_ += bytes.size();
  }

  void report_value(std::uint64_t index) {
    const unsigned bytes_each = info(part_.dtype).bits / 8;
    const std::uint64_t byte = position_ + index * bytes_each;
    const Place place = place_of(part_, byte);
    faults_.push_back({Severity::error, fmt::format("{}: element {} is {}", where_, byte / bytes_each, bad_value_name(part_.dtype)), place.path, place.offset});
  }

  const Part& part_;
  std::string where_;
  std::uint64_t position_ = 0;
  std::uint64_t bad_values_ = 0;  // elements
  std::vector<Fault> faults_;
};

void check_values(const Model& model, const Progress& progress, VerifyReport& report) {
  std::vector<std::pair<const Tensor*, const Part*>> parts;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) {
      parts.emplace_back(&tensor, &part);
      report.bytes += part.blob->size();
    }
  }
  Meter meter(progress, report.bytes);
  std::mutex meter_mutex;
  std::vector<std::vector<Fault>> faults(parts.size());
  oneapi::tbb::parallel_for(std::size_t{0}, parts.size(), [&](std::size_t i) {
    PartCheck check(*parts[i].first, *parts[i].second);
    check.run([&](std::uint64_t bytes) {
      const std::lock_guard lock(meter_mutex);
      meter.advance(bytes, parts[i].first->name);
    });
    faults[i] = check.take();
    const Tensor& tensor = *parts[i].first;
    if (tensor.layout == Layout::affine) check_affine(tensor, faults[i]);
  });
  for (std::vector<Fault>& found : faults) std::ranges::move(found, std::back_inserter(report.faults));
}

}  // namespace

std::size_t VerifyReport::errors() const { return static_cast<std::size_t>(std::ranges::count(faults, Severity::error, &Fault::severity)); }

std::size_t VerifyReport::warnings() const { return faults.size() - errors(); }

VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress) {
  VerifyReport report;
  try {
    const Model model = open(path, options);
    report.format = model.origin.format;
    report.tensors = model.size();
    for (const Warning& warning : model.warnings) report.faults.push_back({Severity::warning, warning.message, warning.path, warning.offset});
    for (const std::string& fault : check_consistency(model)) report.faults.push_back({Severity::error, fault, path.string(), std::nullopt});
    check_values(model, progress, report);
  } catch (const Error& error) {
    if (!is_about_the_file(error)) throw;
    report.faults.push_back(fault_from(error));
  }
  return report;
}

}  // namespace poise
