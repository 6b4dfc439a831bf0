#include <poise/convert.hpp>

#include <chrono>

#include <poise/error.hpp>

#include "io/sink.hpp"
#include "ops/conversion.hpp"
#include "ops/digest_check.hpp"
#include "ops/measured_losses.hpp"
#include "ops/part_errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// All of a conversion that looks at the input's bytes.
ConvertReport write_transformed(Plan::Work& work, FileOutput& file) {
  Transformed& transformed = work.transformed;
  const ConvertOptions& options = work.options;
  const MeasuredLosses losses(transformed);
  make_sparse(transformed, options);
  std::optional<DigestCheck> check;
  if (options.verify) {
    check.emplace(std::vector<const Model*>{work.input}, [&](const Tensor& tensor) { return transformed.model.find(tensor.name) != nullptr; });
  }
  const auto write = [&](const Progress& progress) {
    WriteOptions watched = options.write;
    watched.progress = progress;
    write_model(transformed.model, *work.format, file, watched);
    return file.bytes();
  };
  ConvertReport report;
  report.bytes_out = check ? check->around(options.write.progress, write) : write(options.write.progress);
  report.bytes_padding = file.padding();
  file.commit();
  report.format = work.format->info.name;
  report.tensors = transformed.model.size();
  report.skipped = transformed.skipped.size();
  report.bytes_in = transformed.model.origin.size;
  report.warnings = transformed.model.warnings;
  if (const auto unchecked = check ? check->unchecked() : std::nullopt) report.warnings.push_back(*unchecked);
  report.losses = losses_of(transformed.model, *work.format, options.write);
  losses.tell(report);
  return report;
}

ConvertReport carry_out(Plan::Work& work, const fs::path& output) {
  FileOutput file(output, work.options.write.overwrite, work.files);
  return naming_parts({work.input}, [&] { return write_transformed(work, file); });
}

}  // namespace

ConvertReport write(const Plan& plan, const fs::path& output) {
  const auto start = Clock::now();
  if (!plan.work || plan.work->is_written) throw Error(ErrorKind::bad_argument, "the plan has been carried out already, or is none");
  plan.work->is_written = true;
  ConvertReport report = carry_out(*plan.work, output);
  report.seconds = seconds_since(start);
  return report;
}

ConvertReport convert(const fs::path& input, const fs::path& output, const ConvertOptions& options) {
  const auto start = Clock::now();
  const auto work = prepare(input, output, options);
  ConvertReport report = carry_out(*work, output);
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace poise
