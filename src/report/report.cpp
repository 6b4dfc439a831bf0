// Makes a page about the content of a model, its faults and its numbers (make_report() and write_report()).
//
// verify_input() reads the parts in batches. While a batch is in the page cache, this file computes the statistics and
// heat maps of its tensors.
#include "report/report.hpp"

#include <algorithm>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"
#include "ops/check_hub.hpp"
#include "ops/tensor_details.hpp"
#include "ops/verify_input.hpp"
#include "pack/digest.hpp"
#include "report/model_data.hpp"
#include "report/packed.hpp"
#include "report/tensor_data.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostPackedBytes = 2'000'000;  // tensors, maps and tokens, before base64; tokens get what remains
constexpr std::size_t kLeastVocabularyBytes = 200'000;

// Shows several jobs as one, whose total is their sum.
class JointProgress {
 public:
  JointProgress(Progress progress, std::uint64_t total) : progress_(std::move(progress)), total_(total) {}

  void add(std::uint64_t bytes) { total_ = saturating_add(total_, bytes); }

  // Returns the progress of the next job. Requires: this object outlives the result.
  Progress make_part() {
    if (!progress_) return {};
    return [this, last = std::uint64_t{0}](const ProgressEvent& event) mutable {
      const std::lock_guard lock(mutex_);
      done_ += event.done - std::exchange(last, event.done);
      // Isolated, as in a Meter.
      return oneapi::tbb::this_task_arena::isolate([&] {
        return progress_({std::min(done_, total_), total_, event.item});
      });
    };
  }

 private:
  std::mutex mutex_;
  Progress progress_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
};

std::uint64_t count_bytes(const Model& model) {
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : model.tensors()) bytes += std::min(tensor.size_bytes(), UINT64_MAX / 4 - bytes);
  return bytes;
}

class Report {
 public:
  Report(const ReportInputs& inputs, const ReportOptions& options)
      : options_(options),
        input_(inputs.model),
        model_(open_with_format(input_, options.read).model),
        tensors_(model_),
        progress_(options.progress, 2 * count_bytes(model_)) {
    if (!inputs.against) return;
    other_ = open_with_format(*inputs.against, options.read).model;
    // The comparison's progress counts 4 bytes for each element of a tensor that is not sparse.
    for (const Tensor& tensor : other_->tensors()) progress_.add(checked_mul(tensor.elements(), 4).value_or(0));
  }

  std::string make() {
    std::vector<PartHash> hashes;
    const VerifyReport verified = read_all(hashes);
    TensorColumns columns(hashes);
    for (const Tensor* tensor : tensors_.listed()) columns.add(*tensor, facts_[tensor->name]);
    Value against;
    if (other_) against = compare_with(*other_, model_, tensors_, progress_.make_part(), columns);
    PageData page;
    page.title = make_report_title(model_);
    page.tensors = deflate_bytes(columns.release_json());
    page.maps = deflate_bytes(columns.release_maps());
    Attributes data = describe_model(model_);
    data.set("poise", POISE_VERSION);
    data.set("verify", describe_findings(verified));
    data.set("memory", describe_memory(model_));
    data.set("chat", describe_chat(model_));
    data.set("digests", describe_digests(std::move(hashes)));
    data.set("against", std::move(against));
    data.set("listed", tensors_.listed().size());
    data.set("maps",
             Attributes{{"side", tensors_.side()}, {"count", tensors_.map_count()}, {"of", tensors_.matrix_count()}});
    if (model_.vocabulary) {
      const std::size_t used = page.tensors.size() + page.maps.size();
      const std::size_t most = std::max(kLeastVocabularyBytes, kMostPackedBytes - std::min(used, kMostPackedBytes));
      std::size_t kept = 0;
      page.vocabulary = pack_vocabulary(*model_.vocabulary, most, kept);
      data.set("tokens", kept);
    }
    page.model = to_json(data);
    return make_page(page);
  }

 private:
  VerifyReport read_all(std::vector<PartHash>& hashes) {
    const CheckHooks hooks{[this](std::span<const Tensor* const> batch) { read_batch(batch); }, &hashes};
    VerifyReport report = verify_input(input_, options_.read, progress_.make_part(), &hooks);
    if (input_.has_folder) {
      HubCheck check = check_hub_files(input_.path, options_.read.io, {});
      report.file_digests += check.files;
      report.has_digests = report.has_digests || check.files > 0;
      std::ranges::move(check.findings, std::back_inserter(report.faults));
    }
    return report;
  }

  // Reads the numbers of those tensors in the batch that the page lists. Finds them by name, because verify_input()
  // opens a model of its own.
  void read_batch(std::span<const Tensor* const> batch) {
    std::vector<const Tensor*> own;
    for (const Tensor* tensor : batch) {
      const Tensor* const found = model_.find(tensor->name);
      if (found != nullptr && tensors_.is_listed(*found)) own.push_back(found);
    }
    try {
      read_numbers(own);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::internal) throw;
      for (const Tensor* tensor : own) read_numbers_or_problem(*tensor);  // only unreadable tensors then lack numbers
    }
  }

  void read_numbers(const std::vector<const Tensor*>& tensors) {
    DetailedStatistics found = compute_details(
        model_, tensors, [this](const Tensor& tensor) { return tensors_.find_side(tensor); }, progress_.make_part());
    for (std::size_t i = 0; i < tensors.size(); ++i)
      facts_[tensors[i]->name] = {std::move(found.tensors[i]), std::move(found.details[i])};
  }

  void read_numbers_or_problem(const Tensor& tensor) {
    try {
      read_numbers({&tensor});
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::internal) throw;
      TensorFacts& facts = facts_[tensor.name];
      facts.statistics.problem = error.message();
      facts.statistics.elements = tensor.elements();
    }
  }

  // Returns the hash and zTensor's content digest of the model, as `poise hash` does; null if a part is unreadable.
  Value describe_digests(std::vector<PartHash> hashes) const {
    std::size_t parts = 0;
    for (const Tensor& tensor : model_.tensors()) parts += tensor.parts.size();
    if (hashes.size() != parts) return {};
    std::ranges::sort(hashes, {}, [](const PartHash& part) {
      return std::pair<std::string_view, std::string_view>(part.tensor, part.role);
    });
    std::string lines;
    for (const PartHash& part : hashes) lines += fmt::format("{}  {}/{}\n", part.sha256, part.tensor, part.role);
    return Attributes{{"model", compute_sha256(std::as_bytes(std::span(lines)))},
                      {"content", find_content_digest(model_).value_or("")}};
  }

  const ReportOptions& options_;
  const Input& input_;
  Model model_;
  std::optional<Model> other_;
  PageTensors tensors_;
  JointProgress progress_;
  std::unordered_map<std::string, TensorFacts> facts_;
};

}  // namespace

std::string make_report(const ReportInputs& inputs, const ReportOptions& options) {
  return Report(inputs, options).make();
}

std::uint64_t write_report(const std::filesystem::path& path, const std::filesystem::path& page,
                           const ReportOptions& options) {
  std::vector<std::filesystem::path> paths = {path};
  if (!options.against.empty()) paths.push_back(options.against);
  FileOutput::check_replaceable(page, options.overwrite, paths);
  ReportInputs inputs{open_input(path, options.read), {}};
  if (!options.against.empty()) inputs.against = open_input(options.against, options.read);
  const std::string text = make_report(inputs, options);
  FileOutput output(page, options.overwrite, paths);
  output.main().write(std::as_bytes(std::span(text)));
  output.commit();
  return text.size();
}

}  // namespace poise
