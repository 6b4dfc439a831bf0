#include <poise/convert.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "io/file_descriptor.hpp"
#include "io/sink.hpp"
#include "ops/conversion.hpp"
#include "ops/digest_check.hpp"
#include "ops/shared_bytes.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

bool has_digests(const Model& model, const Tensor& tensor) {
  return !model.origin.file_digests.empty() ||
         std::ranges::any_of(tensor.parts, [](const Part& part) { return bool(part.digest); });
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What will be written, computed on demand.
class Written {
 public:
  explicit Written(Plan::Work& work) : work_(work) {}

  const FilePlan& plan() {
    if (!plan_) plan_ = work_.file().plan();
    return *plan_;
  }
  bool has_tensors() { return !plan().tensor_bytes.empty(); }

 private:
  Plan::Work& work_;
  std::optional<FilePlan> plan_;
};

// Throws io when the file system cannot hold what will certainly be written. Holes and what may be shared with the
// input do not count.
void require_room(const Plan::Work& work, Written& written, const fs::path& output) {
  const auto room = free_space(output);
  if (!room) return;
  const auto takes_room = [&](const Tensor& tensor) {
    return !room->shares_copies ||
           std::ranges::any_of(tensor.parts, [](const Part& part) { return !part.blob->raw(); });
  };
  std::uint64_t most = 0;
  for (const Tensor& tensor : work.transformed.model.tensors()) most = saturating_add(most, tensor.size_bytes());
  if (most <= room->bytes || !written.plan().bytes || !written.plan().exact) return;
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < written.plan().tensor_bytes.size(); ++i) {
    if (takes_room(work.transformed.model.tensors()[i]))
      needed = saturating_add(needed, written.plan().tensor_bytes[i]);
  }
  if (needed <= room->bytes) return;
  throw Error(ErrorKind::io, fmt::format("the tensors need {} bytes, and the file system has {}", needed, room->bytes),
              output.string());
}

// The size of the model's files; of its tensors for a model made in memory.
std::uint64_t bytes_of(const Model& model) {
  if (model.origin.size > 0) return model.origin.size;
  std::uint64_t sum = 0;
  for (const Tensor& tensor : model.tensors()) sum = saturating_add(sum, tensor.size_bytes());
  return sum;
}

// The part of a conversion that reads the input's bytes.
ConvertReport write_transformed(Plan::Work& work, SavedOutput& file, const fs::path& output) {
  Transformed& transformed = work.transformed;
  const ConvertOptions& options = work.options;
  if (!transformed.perhaps_sparse.empty()) {
    work.prepared.reset();
    make_sparse(transformed, options);
  }
  Written written(work);
  require_room(work, written, output);
  std::optional<DigestCheck> check;
  if (options.verify) {
    const std::vector<std::string> none;
    const std::vector<std::string>& replaced = transformed.reformed ? transformed.reformed->replaced : none;
    const std::unordered_set<std::string_view> taken(replaced.begin(), replaced.end());  // became other tensors
    const auto is_taken = [&](const Tensor& tensor) {
      return has_digests(*work.read, tensor) &&
             (transformed.model.find(tensor.name) != nullptr || taken.contains(tensor.name));
    };
    check.emplace(std::vector<const Model*>{work.read},
                  [&](const Tensor& tensor) { return is_taken(tensor) && written.has_tensors(); });
  }
  const auto write = [&](const Progress& progress) {
    work.file().write(file, progress);
    return file.bytes();
  };
  ConvertReport report;
  report.bytes_out = check ? check->around(options.write.progress, write) : write(options.write.progress);
  report.bytes_padding = file.padding();
  report.outputs = file.paths();
  file.commit();
  report.format = work.format->info.name;
  report.tensors = transformed.model.size();
  report.skipped = transformed.skipped.size();
  report.bytes_in = bytes_of(*work.input);
  report.warnings = transformed.model.warnings;
  if (const std::string replaced = file.replaces(); !replaced.empty())
    report.warnings.push_back({Severity::warning, replaced, output.string(), std::nullopt});
  if (const auto unchecked = check ? check->unchecked() : std::nullopt) report.warnings.push_back(*unchecked);
  report.losses = work.reported_losses();
  work.losses->tell(report);
  report.decoded = transformed.decoded;
  report.merged = transformed.merged;
  return report;
}

ConvertReport carry_out(Plan::Work& work, SavedOutput& file, const fs::path& output) {
  return naming_parts({work.read}, [&] { return write_transformed(work, file, output); });
}

ConvertReport carry_out(Plan::Work& work, const fs::path& output) {
  const auto file = output_for(*work.format, output, work.options.write.overwrite, work.files);
  return carry_out(work, *file, output);
}

Plan::Work& begin_writing(const Plan& plan) {
  if (!plan.work || plan.work->is_written)
    throw Error(ErrorKind::bad_argument, "the plan has been carried out already, or is none");
  plan.work->is_written = true;
  return *plan.work;
}

}  // namespace

ConvertReport write(const Plan& plan, const fs::path& output) {
  const auto start = Clock::now();
  ConvertReport report = carry_out(begin_writing(plan), output);
  report.seconds = seconds_since(start);
  return report;
}

ConvertReport write(const Plan& plan, SavedOutput& output) {
  const auto start = Clock::now();
  // The file grows in the temporary directory.
  ConvertReport report = carry_out(begin_writing(plan), output, fs::temp_directory_path() / output.name());
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
