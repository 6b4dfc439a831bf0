#include <poise/verify.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/format.hpp"
#include "io/extents.hpp"
#include "io/hub_cache.hpp"
#include "io/meter.hpp"
#include "model/same_headers.hpp"
#include "ops/check_headers.hpp"
#include "ops/check_hub.hpp"
#include "ops/ranks.hpp"
#include "ops/shared_bytes.hpp"
#include "ops/verify_input.hpp"
#include "ops/verify_part.hpp"
#include "pack/scan.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

void check_indices(const Tensor& tensor, std::vector<Finding>& findings) {
  constexpr std::size_t kMostReported = 20;
  const SparseFaults faults = find_sparse_faults(tensor, get_sparse_rules(tensor), kMostReported);
  const auto report = [&](const std::string& problem, const Part& part, std::uint64_t byte) {
    const Place place = find_place(*part.blob, byte);
    findings.push_back({Severity::error, fmt::format("tensor {}: {}", tensor.name, problem), place.path, place.offset});
  };
  for (const SparseFault& fault : faults.first) report(fault.problem, *fault.part, fault.byte);
  if (faults.count > faults.first.size()) {
    const std::uint64_t more = faults.count - faults.first.size();
    report(fmt::format("{} more {} wrong", more, more == 1 ? "index is" : "indices are"), *faults.first.back().part,
           faults.first.back().byte);
  }
}

// Checks the parts of a tensor against each other: sparse indices inside the shape, codes with a usable scale and an
// existing group, and numbers that fit float32. Does not repeat findings in `known`, which are about single parts.
std::vector<Finding> check_layout(const Tensor& tensor, const std::vector<Finding>& known) {
  std::vector<Finding> findings;
  try {
    if (const LayoutType& layout = find_layout_type(tensor.layout); layout.scheme_faults != nullptr)
      findings = layout.scheme_faults(tensor);
    const bool is_known = std::ranges::none_of(
        tensor.parts, [](const Part& part) { return part.role != "values" && part.dtype == DType::unknown; });
    if (is_sparse(tensor) && is_known) {
      check_indices(tensor, findings);
    } else {
      check_content(tensor);
      require_finite_numbers(tensor);
    }
  } catch (const Error& error) {
    if (!is_about_the_part(error)) throw;
    const bool is_known = std::ranges::any_of(known, [&](const Finding& finding) {
      return finding.path == error.path() && finding.offset == error.offset() &&
             finding.message.ends_with(error.message());
    });
    if (is_known) return findings;
    Finding& finding = findings.emplace_back(make_finding(error));
    if (!finding.path.empty() || tensor.parts.empty()) return findings;
    const Place place = find_place(*tensor.parts.front().blob);
    finding.path = place.path;
    finding.offset = place.offset;
  }
  return findings;
}

// If there are findings elsewhere, adds one that refers to them, with the severity and place of the worst.
void add_reference(const std::vector<Finding>& elsewhere, std::string message, std::vector<Finding>& findings) {
  const auto worst = std::ranges::max_element(
      elsewhere, {}, [](const Finding& finding) { return finding.severity == Severity::error; });
  if (worst != elsewhere.end()) findings.push_back({worst->severity, std::move(message), worst->path, worst->offset});
}

// Checks the digest of a whole file that holds parts of the model.
class FileCheck final : public Visitor {
 public:
  FileCheck(const FileDigest& file, const BlobPtr& all, std::optional<Finding>& finding, Meter& meter)
      : file_(file), claim_(all, file.digest), finding_(finding), meter_(meter) {}

  bool needs_sha256() const { return claim_.needs_sha256(); }
  void update(std::span<const std::byte> bytes) override {
    claim_.update(bytes);
    meter_.advance(bytes.size(), file_.what);
  }
  void end(std::string sha256) override {
    if (const auto problem = claim_.find_mismatch(std::move(sha256)))
      finding_ = Finding{Severity::error, fmt::format("{}: {}", file_.what, *problem), file_.path, {}};
  }

 private:
  const FileDigest& file_;
  DigestClaim claim_;
  std::optional<Finding>& finding_;
  Meter& meter_;
};

// Checks every part of a model, then every tensor, and the digests of whole files. Checks equal parts (same_part_) and
// equal sparse indices (same_indices_) only once.
class ModelCheck {
 public:
  // `hooks` is null if there are none, `ranks` for a single rank. Requires: one of them is null.
  ModelCheck(const Model& model, IoMode io, const Progress& progress, const CheckHooks* hooks, Communicator* ranks)
      : hooks_(hooks),
        ranks_(ranks),
        parts_(list_parts(model)),
        outcomes_(parts_.size()),
        same_part_(find_first_with_same_values(parts_)),
        same_indices_(find_first_with_same_indices(model)) {
    std::size_t part = 0;
    for (const Tensor& tensor : model.tensors()) {
      tensors_.push_back({&tensor, part, part + tensor.parts.size()});
      part += tensor.parts.size();
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!same_part_[i]) own_.push_back(i);
    }
    add_files(model, io);
    for (const std::size_t i : own_)
      bytes_ = saturating_add(bytes_, sizes_.emplace_back(get_size_or_zero(*parts_[i].part->blob)));
    for (const FileItem& file : files_) sizes_.push_back(file.all->size());
    read_ = choose_own_items(sizes_);
    std::uint64_t bytes_read = 0;
    for (const std::size_t i : read_) bytes_read = saturating_add(bytes_read, sizes_[i]);
    meter_.emplace(progress, bytes_read);
  }

  void check_all(VerifyReport& report) {
    scan_all();
    if (ranks_ != nullptr) exchange_outcomes();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (same_part_[i]) copy_part_result(i, *same_part_[i]);
    }
    std::vector<std::uint64_t> sizes;
    for (const TensorItem& item : tensors_) {
      std::uint64_t& size = sizes.emplace_back(0);
      for (const Part& part : item.tensor->parts) size = saturating_add(size, get_size_or_zero(*part.blob));
    }
    const std::vector<std::size_t> checked = choose_own_items(sizes);
    oneapi::tbb::parallel_for(std::size_t{0}, checked.size(), [&](std::size_t i) {
      if (!same_indices_[checked[i]]) check(tensors_[checked[i]]);
    });
    if (ranks_ != nullptr) exchange_findings(checked);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (same_indices_[i]) copy_index_result(tensors_[i], tensors_[*same_indices_[i]]);
    }
    add_to(report);
  }

  // Returns findings about whole files. Requires: check_all() has returned.
  std::vector<Finding> collect_file_findings() {
    for (FileItem& item : files_) {
      if (item.finding) file_findings_.push_back(std::move(*item.finding));
    }
    return std::move(file_findings_);
  }

 private:
  struct TensorItem {
    const Tensor* tensor;
    std::size_t first, last;  // parts [first, last) are those of the tensor
    std::vector<Finding> findings = {};
  };

  struct FileItem {
    const FileDigest* file;
    BlobPtr all;
    std::optional<Finding> finding = {};
  };

  // Returns a running scan of read_[first, last).
  std::unique_ptr<Scan> start_scan(std::size_t first, std::size_t last) {
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = first; i < last; ++i) sizes.push_back(sizes_[read_[i]]);
    auto scan = std::make_unique<Scan>(sizes, [this, first](std::size_t i) {
      const std::size_t item = read_[first + i];
      return item < own_.size() ? visit_part(own_[item]) : visit_file(files_[item - own_.size()]);
    });
    scan->start();
    return scan;
  }

  // Reads everything at once. With hooks, reads in batches: while a hook uses a batch, the next one is being read.
  void scan_all() {
    if (hooks_ == nullptr || !hooks_->after_batch) return start_scan(0, read_.size())->finish();
    std::vector<const Tensor*> read;  // the tensors that the current scan reads
    std::unique_ptr<Scan> scan;
    std::size_t item = 0;
    for (std::size_t t = 0; t < tensors_.size();) {
      std::vector<const Tensor*> batch;
      std::uint64_t bytes = 0;
      const std::size_t first = item;
      for (; t < tensors_.size() && bytes < kHookBatchBytes; ++t) {
        batch.push_back(tensors_[t].tensor);
        for (; item < own_.size() && own_[item] < tensors_[t].last; ++item) bytes = saturating_add(bytes, sizes_[item]);
      }
      if (scan) scan->finish();
      scan = start_scan(first, item);
      if (!read.empty()) hooks_->after_batch(read);
      read = std::move(batch);
    }
    if (scan) scan->finish();
    scan = start_scan(own_.size(), sizes_.size());
    if (!read.empty()) hooks_->after_batch(read);
    scan->finish();
  }

  // Returns the items of these sizes that this rank reads.
  std::vector<std::size_t> choose_own_items(std::span<const std::uint64_t> sizes) const {
    std::vector<std::size_t> own;
    const std::vector<std::size_t> dealt =
        ranks_ == nullptr ? std::vector<std::size_t>(sizes.size()) : assign_to_ranks(sizes, ranks_->size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (ranks_ == nullptr || dealt[i] == ranks_->rank()) own.push_back(i);
    }
    return own;
  }

  // Sends each rank the outcomes of parts and files that the others have read.
  void exchange_outcomes() {
    std::string message;
    for (const std::size_t i : read_) {
      append_number(message, i);
      if (i >= own_.size()) {
        const std::optional<Finding>& finding = files_[i - own_.size()].finding;
        append_findings(message, {finding ? &*finding : nullptr, finding ? std::size_t{1} : 0});
        continue;
      }
      append_number(message, outcomes_[own_[i]].checked_digest ? 1 : 0);
      append_findings(message, outcomes_[own_[i]].findings);
    }
    for (const std::string& text : ranks_->gather(message)) {
      for (std::string_view left = text; !left.empty();) {
        const std::uint64_t i = read_number(left);
        if (i >= own_.size()) {
          const std::vector<Finding> findings = read_findings(left);
          if (!findings.empty()) files_.at(i - own_.size()).finding = findings.front();
          continue;
        }
        PartOutcome& outcome = outcomes_.at(own_[i]);
        outcome.checked_digest = read_number(left) != 0;
        outcome.findings = read_findings(left);
      }
    }
  }

  // Exchanges the findings about the tensors that each rank has checked.
  void exchange_findings(std::span<const std::size_t> checked) {
    std::string message;
    for (const std::size_t i : checked) {
      append_number(message, i);
      append_findings(message, tensors_[i].findings);
    }
    for (const std::string& text : ranks_->gather(message)) {
      for (std::string_view left = text; !left.empty();) {
        const std::uint64_t i = read_number(left);
        tensors_.at(i).findings = read_findings(left);
      }
    }
  }

  void add_files(const Model& model, IoMode io) {
    for (const FileDigest& file : model.origin.file_digests) {
      if (is_computable(file.digest.algorithm)) {
        const SourcePtr source = Source::open(file.path, io);
        files_.push_back({&file, make_source_blob(source, 0, source->size())});
      } else {
        const std::string problem =
            fmt::format("{}: the digest {} is of a kind that Poise cannot compute; it was not checked", file.what,
                        file.digest.text);
        file_findings_.push_back({Severity::warning, problem, file.path, {}});
      }
    }
  }

  Visit visit_part(std::size_t i) {
    const auto& [tensor, part] = parts_[i];
    return PartCheck::make_visit(
        *tensor, *part, outcomes_[i],
        [this, tensor = tensor](std::uint64_t bytes) { meter_->advance(bytes, tensor->name); },
        hooks_ != nullptr && hooks_->hashes != nullptr);
  }

  Visit visit_file(FileItem& item) {
    auto check = std::make_unique<FileCheck>(*item.file, item.all, item.finding, *meter_);
    const bool sha256 = check->needs_sha256();
    return {item.all, sha256, std::move(check)};
  }

  void copy_part_result(std::size_t i, std::size_t other) {
    outcomes_[i].checked_digest = outcomes_[other].checked_digest;
    add_reference(
        outcomes_[other].findings,
        fmt::format("tensor {}: {}: these are the bytes of tensor {}: {}, which has findings", parts_[i].tensor->name,
                    parts_[i].part->role, parts_[other].tensor->name, parts_[other].part->role),
        outcomes_[i].findings);
  }

  void check(TensorItem& item) {
    meter_->advance(0, item.tensor->name);  // the user may cancel here
    std::vector<Finding> known;
    for (std::size_t i = item.first; i < item.last; ++i)
      std::ranges::copy(outcomes_[same_part_[i].value_or(i)].findings, std::back_inserter(known));
    item.findings = check_layout(*item.tensor, known);
  }

  static void copy_index_result(TensorItem& item, const TensorItem& other) {
    add_reference(other.findings,
                  fmt::format("tensor {}: its indices are those of tensor {}, which has findings", item.tensor->name,
                              other.tensor->name),
                  item.findings);
  }

  void add_hashes(std::vector<PartHash>& hashes) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::string& sha256 = outcomes_[same_part_[i].value_or(i)].sha256;
      if (!sha256.empty()) hashes.push_back({parts_[i].tensor->name, parts_[i].part->role, sha256});
    }
  }

  void add_to(VerifyReport& report) {
    if (hooks_ != nullptr && hooks_->hashes != nullptr) add_hashes(*hooks_->hashes);
    report.bytes = bytes_;
    for (TensorItem& item : tensors_) {
      const std::size_t before = report.faults.size();
      for (std::size_t i = item.first; i < item.last; ++i) {
        if (outcomes_[i].checked_digest) ++report.digests;
        std::ranges::move(outcomes_[i].findings, std::back_inserter(report.faults));
      }
      std::ranges::move(item.findings, std::back_inserter(report.faults));
      for (std::size_t i = before; i < report.faults.size(); ++i) report.faults[i].tensor = item.tensor->name;
    }
    report.file_digests = files_.size();
  }

  // Two batches should fit the page cache if there are hooks, and a batch should have work for many processors.
  static constexpr std::uint64_t kHookBatchBytes = 2 * Scan::kBatchBytes;

  const CheckHooks* hooks_;  // null: none
  Communicator* ranks_;      // null: a single rank
  std::vector<PartRef> parts_;
  std::vector<PartOutcome> outcomes_;
  SameBefore same_part_;     // the earlier part with the same outcome
  SameBefore same_indices_;  // the earlier tensor with the same indices
  std::vector<TensorItem> tensors_;
  std::vector<std::size_t> own_;   // parts without an entry in same_part_
  std::vector<FileItem> files_;    // files with a digest that can be computed
  std::vector<std::size_t> read_;  // the items of this rank: indices in own_, then own_.size() + indices in files_
  std::vector<Finding> file_findings_;
  std::uint64_t bytes_ = 0;           // the bytes of the parts that are read
  std::vector<std::uint64_t> sizes_;  // the sizes of own_, and then of files_
  std::optional<Meter> meter_;
};

// Reports code that other programs would run when they load the file in any format, except code in report.faults.
void add_code_findings(const SourcePtr& source, VerifyReport& report) {
  const std::vector<Finding> known = report.faults;
  std::ranges::move(find_dangerous_code_in_file(source, known), std::back_inserter(report.faults));
}

// Reports code in a file that Poise cannot open as a model, because other programs may still load it.
void add_code_findings_if_readable(const Input& input, VerifyReport& report) {
  if (!input.source) return;
  try {
    add_code_findings(input.source, report);
  } catch (const Error& error) {
    if (!is_about_the_file(error)) throw;  // the report has an error already
  }
}

// Opens a model. Throws on all ranks if only some of them can open it, or if they fail for different reasons, because a
// rank that continued alone would wait for the others.
Opened open_on_all_ranks(const Input& input, const ReadOptions& options, Communicator* ranks) {
  if (ranks == nullptr || ranks->size() == 1) return open_despite_faults(input, options);
  std::optional<Opened> opened;
  std::optional<Error> problem;
  try {
    opened = open_despite_faults(input, options);
  } catch (const Error& error) {
    if (!is_about_the_file(error)) throw;
    problem = error;
  }
  const std::vector<std::string> problems = ranks->gather(problem ? problem->what() : "");
  for (std::size_t rank = 1; rank < problems.size(); ++rank) {
    if (problems[rank] == problems[0]) continue;
    const auto describe = [](const std::string& text) { return text.empty() ? "opens it" : "reports: " + text; };
    throw Error(ErrorKind::io,
                fmt::format("rank 0 {}, and rank {} {}; copy the same files to every machine", describe(problems[0]),
                            rank, describe(problems[rank])),
                input.path.string());
  }
  if (problem) throw *problem;
  return *std::move(opened);
}

bool has_digests(const Model& model) {
  return !model.origin.file_digests.empty() || std::ranges::any_of(model.tensors(), [](const Tensor& tensor) {
    return std::ranges::any_of(tensor.parts, [](const Part& part) { return bool(part.digest); });
  });
}

}  // namespace

std::size_t VerifyReport::errors() const {
  return static_cast<std::size_t>(std::ranges::count(faults, Severity::error, &Finding::severity));
}

std::size_t VerifyReport::warnings() const { return faults.size() - errors(); }

VerifyReport verify_input(const Input& given, const ReadOptions& options, const Progress& progress,
                          const CheckHooks* hooks, Communicator* ranks) {
  const bool is_first = ranks == nullptr || ranks->rank() == 0;
  VerifyReport report;
  const auto check_tensors = [&](const Model& model) {
    report.format = model.origin.format;
    report.tensors = model.size();
    report.has_digests = has_digests(model);
    if (ranks != nullptr) require_same_headers(model, *ranks);
    ModelCheck check(model, options.io, progress, hooks, ranks);
    check.check_all(report);
    return check.collect_file_findings();
  };
  try {
    const auto [format, input, model, faults] = open_on_all_ranks(given, options, ranks);
    report.faults = faults;
    std::ranges::copy(model.warnings, std::back_inserter(report.faults));
    // A model without its faulty tensors is not whole: headers may disagree, and bytes may belong to no tensor. The
    // audit of checksums remains, because they cover all bytes.
    const bool is_whole = faults.empty();
    if (is_whole) std::ranges::move(check_headers(model, given.path, !options.raw), std::back_inserter(report.faults));
    std::vector<Finding> of_files = check_tensors(model);
    if (!is_first) return report;
    if (format->audit != nullptr && (is_whole || format->count_checksums != nullptr))
      std::ranges::move(format->audit(input, model), std::back_inserter(report.faults));
    const bool looks_for_code = format->find_dangerous_code != nullptr || format->holds_in_archive != nullptr;
    if (input.source && !looks_for_code) add_code_findings(input.source, report);
    if (format->count_checksums != nullptr) report.checksums = format->count_checksums(input, model);
    report.has_digests = report.has_digests || report.checksums > 0;
    std::ranges::move(of_files, std::back_inserter(report.faults));
  } catch (const Error& error) {
    if (!is_about_the_file(error)) throw;
    report.faults.push_back(make_finding(error));
    add_code_findings_if_readable(given, report);
  }
  return report;
}

namespace {

VerifyReport verify_path(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress,
                         Communicator* ranks) {
  const bool is_first = ranks == nullptr || ranks->rank() == 0;
  VerifyReport report;
  const auto add = [&](HubCheck check) {
    report.file_digests += check.files;
    report.has_digests = report.has_digests || check.files > 0;
    std::ranges::move(check.findings, std::back_inserter(report.faults));
    return check.bytes;
  };
  if (is_hub_repository(path) || is_hub_cache(path)) {
    report.format = kHubCache;
    if (is_first) report.bytes = add(check_hub_cache(path, options.io, progress));
    return report;
  }
  report = verify_input(open_input(path, options), options, progress, nullptr, ranks);
  if (is_first) add(check_hub_files(path, options.io, progress));
  return report;
}

}  // namespace

VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress) {
  return verify_path(path, options, progress, nullptr);
}

VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress,
                    Communicator& ranks) {
  return verify_path(path, options, progress, &ranks);
}

}  // namespace poise
